"""Steps of networks: their settings, and the layers that they give for a sample."""
