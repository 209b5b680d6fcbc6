SELECT CAST(client AS text) AS client, COUNT(*) AS records,
  SUM(class) AS positives,
  SUM(CASE WHEN number < -9.0e0 THEN -9
    WHEN number > 9.0e0 THEN 9
    ELSE CAST((number + 6755399441055744e0) - 6755399441055744e0 AS BIGINT) END) AS total,
  MIN(score) AS low, MAX(score) AS high
FROM (
  SELECT client, class, score, constant + part * (linear + part * (square + part * cube)) AS number
  FROM (
    SELECT client, class, score, constant, linear, square, cube,
      score - origin AS part
    FROM (
  SELECT client, class, score,
    width_bucket(score, CAST(ARRAY[
      0.5e0
    ] AS double precision[])) AS cell
  FROM (
SELECT "si te" AS client,
  CASE WHEN LOWER(TRIM(CAST("label" AS text))) IN ('1', 'true')
  OR (LOWER(TRIM(CAST("label" AS text))) LIKE '1.%' AND REPLACE(LOWER(TRIM(CAST("label" AS text))), '0', '') IN ('1.', '1.e')) THEN 1
  WHEN LOWER(TRIM(CAST("label" AS text))) IN ('0', '-0', 'false')
  OR (LOWER(TRIM(CAST("label" AS text))) LIKE '0.%' AND REPLACE(LOWER(TRIM(CAST("label" AS text))), '0', '') IN ('.', '.e')) THEN 0
  ELSE -1 END AS class,
  CAST("score" AS double precision) AS score
FROM "clinic"."scored"
) AS scored_records
  WHERE class >= 0 AND score > -CAST('Infinity' AS double precision) AND score < CAST('Infinity' AS double precision)
) AS placed_records
    JOIN (SELECT piece, CAST(origin AS double precision) AS origin, CAST(cube AS double precision) AS cube, CAST(square AS double precision) AS square, CAST(linear AS double precision) AS linear, CAST(constant AS double precision) AS constant FROM (VALUES
  (0, 0.0e0, 0.0e0, 0.25e0, 0.5e0, 0.75e0),
  (1, 0.0e0, 1.0e0, 1.25e0, 1.5e0, 1.75e0),
  (2, 0.5e0, 0.125e0, 0.375e0, 0.625e0, 0.875e0),
  (3, 0.5e0, 1.125e0, 1.375e0, 1.625e0, 1.875e0)
) AS listed(piece, origin, cube, square, linear, constant)) AS tacit_cubics ON piece = 2 * cell + class
  ) AS parted_records
) AS evaluated_records
GROUP BY client;

SELECT CAST(client AS text) AS client, COUNT(*) AS records,
  SUM(class) AS positives,
  SUM(CASE WHEN number < -9.0e0 THEN -9
    WHEN number > 9.0e0 THEN 9
    ELSE CAST((number + 6755399441055744e0) - 6755399441055744e0 AS BIGINT) END) AS total,
  MIN(score) AS low, MAX(score) AS high
FROM (
  SELECT client, class, score, constant + part * (linear + part * (square + part * cube)) AS number
  FROM (
    SELECT client, class, score, constant, linear, square, cube,
      CASE WHEN score < 0.25e0 THEN 0.125e0 / (0.125e0 + (0.25e0 - score))
        WHEN score >= 0.75e0 THEN 1e0 - 0.5e0 / (0.5e0 + (score - (0.75e0)))
        ELSE score - origin END AS part
    FROM (
  SELECT client, class, score,
    width_bucket(score, CAST(ARRAY[
      0.5e0
    ] AS double precision[])) AS cell
  FROM (
SELECT "si te" AS client,
  CASE WHEN LOWER(TRIM(CAST("label" AS text))) IN ('1', 'true')
  OR (LOWER(TRIM(CAST("label" AS text))) LIKE '1.%' AND REPLACE(LOWER(TRIM(CAST("label" AS text))), '0', '') IN ('1.', '1.e')) THEN 1
  WHEN LOWER(TRIM(CAST("label" AS text))) IN ('0', '-0', 'false')
  OR (LOWER(TRIM(CAST("label" AS text))) LIKE '0.%' AND REPLACE(LOWER(TRIM(CAST("label" AS text))), '0', '') IN ('.', '.e')) THEN 0
  ELSE -1 END AS class,
  CAST("score" AS double precision) AS score
FROM "clinic"."scored"
) AS scored_records
  WHERE class >= 0 AND score > -CAST('Infinity' AS double precision) AND score < CAST('Infinity' AS double precision)
) AS placed_records
    JOIN (SELECT piece, CAST(origin AS double precision) AS origin, CAST(cube AS double precision) AS cube, CAST(square AS double precision) AS square, CAST(linear AS double precision) AS linear, CAST(constant AS double precision) AS constant FROM (VALUES
  (0, 0.0e0, 0.0e0, 0.25e0, 0.5e0, 0.75e0),
  (1, 0.0e0, 1.0e0, 1.25e0, 1.5e0, 1.75e0),
  (2, 0.5e0, 0.125e0, 0.375e0, 0.625e0, 0.875e0),
  (3, 0.5e0, 1.125e0, 1.375e0, 1.625e0, 1.875e0)
) AS listed(piece, origin, cube, square, linear, constant)) AS tacit_cubics ON piece = 2 * cell + class
  ) AS parted_records
) AS evaluated_records
GROUP BY client;
