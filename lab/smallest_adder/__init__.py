"""The smallest transformer that adds two 10-digit integers: is a submission what the challenge asks for?"""
