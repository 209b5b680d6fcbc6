"""What every protocol's error would be, before anything is spent."""
