"""Each talks to one vendor, or stands in for one."""
