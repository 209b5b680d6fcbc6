"""Tests of noise, randomised response and costs."""
