SELECT CAST(client AS VARCHAR) AS client, class, cell, records,
  total, '4-0123abcd' AS cells
FROM (
  SELECT client, class, cell, CAST(SUM(records) AS BIGINT) AS records, MAX(total) AS total
  FROM (
    SELECT client, cell, records, total,
      CASE WHEN LOWER(TRIM(CAST("label" AS VARCHAR))) IN ('1', 'true')
        OR (LOWER(TRIM(CAST("label" AS VARCHAR))) LIKE '1.%' AND REPLACE(LOWER(TRIM(CAST("label" AS VARCHAR))), '0', '') IN ('1.', '1.e')) THEN 1
        WHEN LOWER(TRIM(CAST("label" AS VARCHAR))) IN ('0', '-0', 'false')
        OR (LOWER(TRIM(CAST("label" AS VARCHAR))) LIKE '0.%' AND REPLACE(LOWER(TRIM(CAST("label" AS VARCHAR))), '0', '') IN ('.', '.e')) THEN 0
        ELSE -1 END AS class
    FROM (
      SELECT client, "label", cell, COUNT(*) AS records,
        SUM(COUNT(*)) OVER () AS total
      FROM (
        SELECT client, "label",
          CASE WHEN ISFINITE(score) AND score >= 0.0e0 AND score <= 1.0e0 THEN
            CASE WHEN score >= 0.25e0 THEN
              CASE WHEN score >= 0.5e0 THEN
                3
              ELSE
                2
              END
            ELSE
              CASE WHEN score >= 0.001e0 THEN
                1
              ELSE
                0
              END
            END
          ELSE -1 END AS cell
        FROM (
SELECT "si te" AS client, "label" AS "label",
  CAST("score" AS DOUBLE) AS score
FROM "clinic"."scored"
) AS scored_records
      ) AS placed_records
      GROUP BY client, "label", cell
    ) AS grouped_records
  ) AS classed_records
  GROUP BY client, class, cell
) AS counted_records
ORDER BY client, class, cell;
