"""What all HTTP servers of the package share; it loads no judge, no store and no framework."""
