SELECT CAST(client AS VARCHAR) AS client, COUNT(*) AS records,
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
    below + CAST(score >= alone AS INTEGER) AS cell
  FROM (
    SELECT client, class, score,
      TRY_CAST(FLOOR((score - (0.0e0)) * 256.0e0) AS INTEGER) AS bin
    FROM (
SELECT "si te" AS client,
  CASE WHEN LOWER(TRIM(CAST("label" AS VARCHAR))) IN ('1', 'true')
  OR (LOWER(TRIM(CAST("label" AS VARCHAR))) LIKE '1.%' AND REPLACE(LOWER(TRIM(CAST("label" AS VARCHAR))), '0', '') IN ('1.', '1.e')) THEN 1
  WHEN LOWER(TRIM(CAST("label" AS VARCHAR))) IN ('0', '-0', 'false')
  OR (LOWER(TRIM(CAST("label" AS VARCHAR))) LIKE '0.%' AND REPLACE(LOWER(TRIM(CAST("label" AS VARCHAR))), '0', '') IN ('.', '.e')) THEN 0
  ELSE -1 END AS class,
  CAST("score" AS DOUBLE) AS score
FROM "clinic"."scored"
) AS scored_records
    WHERE class >= 0
  ) AS binned_records
  JOIN tacit_bins USING (bin)
) AS placed_records
    JOIN tacit_cubics ON piece = 2 * cell + class
  ) AS parted_records
) AS evaluated_records
GROUP BY client;

SELECT CAST(client AS VARCHAR) AS client, COUNT(*) AS records,
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
    below + CAST(score >= alone AS INTEGER) AS cell
  FROM (
    SELECT client, class, score,
      TRY_CAST(FLOOR((score - (0.0e0)) * 256.0e0) AS INTEGER) AS bin
    FROM (
SELECT "si te" AS client,
  CASE WHEN LOWER(TRIM(CAST("label" AS VARCHAR))) IN ('1', 'true')
  OR (LOWER(TRIM(CAST("label" AS VARCHAR))) LIKE '1.%' AND REPLACE(LOWER(TRIM(CAST("label" AS VARCHAR))), '0', '') IN ('1.', '1.e')) THEN 1
  WHEN LOWER(TRIM(CAST("label" AS VARCHAR))) IN ('0', '-0', 'false')
  OR (LOWER(TRIM(CAST("label" AS VARCHAR))) LIKE '0.%' AND REPLACE(LOWER(TRIM(CAST("label" AS VARCHAR))), '0', '') IN ('.', '.e')) THEN 0
  ELSE -1 END AS class,
  CAST("score" AS DOUBLE) AS score
FROM "clinic"."scored"
) AS scored_records
    WHERE class >= 0
  ) AS binned_records
  JOIN tacit_bins USING (bin)
) AS placed_records
    JOIN tacit_cubics ON piece = 2 * cell + class
  ) AS parted_records
) AS evaluated_records
GROUP BY client;
