"""EncryptedClassAUC: one-versus-rest AUCs on masked counts, in one session over all classes.

One session, as in ``masked_scheme``, has C one-versus-rest problems. Parties meet once and share
one secret. For class c the secret, the key of every pair of parties, and the key that a party has
alone are replaced by

    HKDF(key, session, "class" || c)

and what follows is a session on masked values for two classes: its masks a, b, g and h, its pads,
the numbers r_i of the parties, and the aggregator's c, u, v and w are drawn for each class.

What is revealed. HKDF's outputs for C distinct labels cannot be told from independent keys, nor
ChaCha20's streams under these from uniform words. Put uniform masks in their places, which changes
nothing that anybody could notice. Then, given the counts of all classes, the views of C classes
are independent of each other, and each is that of a session of two classes:

- The aggregator's words of a class are uniform, and independent but for their sums, which are
  uniform too. So are the words of all classes together: its view follows from nothing but the
  number of parties, and the C rounded AUCs and half-ranges that the parties tell it.
- The parties open ``c X + u``, ``c Y + v`` and ``c Z + w`` of each class. These follow from X, Y
  and Z of the class and draws of its alone: C ratios ``X / (2 Y)`` and ``Z / (2 Y)``, and the size
  of each ``Y = P N`` under a multiplier of its own.
- The aggregator with t parties has the other parties' total counts in every cell of every class's
  score: how many records of the class, and of all others. No count of two classes' scores together
  exists, so none follows.

With one multiplier for all classes the parties would divide its products ``c P N`` by each other,
and have the classes' shares. With C of them the range of all products together narrows: totals a
factor 2 apart in each product are distinguished with advantage at most ``C / k`` (the distance of
product distributions is at most the sum of the distances), and parties that know the classes'
shares know the square of the number of records within 2 to the ``2 k / (C + 1)`` in the mean.

Whole numbers must betray no more than that. ``P_c + N_c`` is the same number for all classes. If
perturbations were narrower than products of totals, few multipliers would give whole ``P_c N_c``
that agree in it. They are wider than every product (``MaskedScheme``), so of each class every
``Y'`` within the octaves is as likely as any other, and so is every vector of class sizes with the
right sum. A classifier of two classes has the same X, Y and Z twice, and two answers about them:
take ``EncryptedAUC`` there.

No average weighted by the classes' sizes is given: ``sum_c P_c A_c / M`` needs the shares ``P_c /
M``, which no one learns. The macro AUC is the mean of C figures that are released anyway.
"""
