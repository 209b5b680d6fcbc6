"""The encrypted AUC on masked counts: both sides, for an aggregator that follows the protocol.

With p and n the positives and negatives of all parties in every cell, from the highest down, and
``T_j = 2 (p_0 + ... + p_j) - p_j``, three bilinear forms of p and n give the AUC ``X / (2 Y)`` and
its certain half-range ``Z / (2 Y)``:

    X = sum_j T_j n_j,    Y = (sum p) (sum n),    Z = sum_{j > 0} p_j n_j

Labelled masks (Catalano and Fiore 2015; Barbosa, Catalano and Fiore 2017), in a prime field. The
parties know a, b and g, which the aggregator does not. Party i sends ``p_i``, ``n_i``, and for each
form B the number ``z_i = B(p_i, b) + B(a, n_i)``, all masked so that their sums are ``p + a``,
``n + b`` and ``z + g``. So the aggregator has the product and a pad, which the parties know:

    B(p + a, n + b) - (z + g) = B(p, n) + pad,    pad = B(a, b) - g

It is blinded without another round: each party has its own ``r_i`` and sends it, and ``R_i = r_i
pad``, masked so that they sum to ``R + h``. The aggregator, with r the sum of the r_i, picks c and
u and answers ``D = c - r`` and ``c (B + pad) + u - (R + h)``. The parties add ``h - D pad``: what
is left is ``c B(p, n) + u``.
"""
