"""The frozen values that everything else passes around."""
