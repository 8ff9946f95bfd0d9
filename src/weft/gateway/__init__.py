"""The one desk between channels and turns, with its inbox, outbox and schedule."""
