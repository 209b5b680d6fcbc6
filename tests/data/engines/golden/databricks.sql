SELECT CAST(client AS STRING) AS client, class, cell, records,
  total, '4-0123abcd' AS cells
FROM (
  SELECT client, class, cell, CAST(SUM(records) AS BIGINT) AS records, MAX(total) AS total
  FROM (
    SELECT client, cell, records, total,
      CASE WHEN LOWER(TRIM(CAST(`label` AS STRING))) IN ('1', 'true')
        OR (LOWER(TRIM(CAST(`label` AS STRING))) LIKE '1.%' AND REPLACE(LOWER(TRIM(CAST(`label` AS STRING))), '0', '') IN ('1.', '1.e')) THEN 1
        WHEN LOWER(TRIM(CAST(`label` AS STRING))) IN ('0', '-0', 'false')
        OR (LOWER(TRIM(CAST(`label` AS STRING))) LIKE '0.%' AND REPLACE(LOWER(TRIM(CAST(`label` AS STRING))), '0', '') IN ('.', '.e')) THEN 0
        ELSE -1 END AS class
    FROM (
      SELECT client, `label`, cell, COUNT(*) AS records,
        SUM(COUNT(*)) OVER () AS total
      FROM (
        SELECT client, `label`,
          CASE WHEN score >= 0.0e0 AND score <= 1.0e0 THEN
            place
          ELSE -1 END AS cell
        FROM (
SELECT client, `label`, score,
  place + CASE WHEN score >= ARRAY(
  0.001e0, 0.25e0, 0.5e0, CAST('Infinity' AS DOUBLE)
)[place] THEN 1 ELSE 0 END AS place
FROM (
SELECT client, `label`, score,
  CAST(FLOOR(LEAST(GREATEST((score - (0.001e0)) * 6.012024048096192e0, 0e0), 2.0e0)) AS INT) AS place
FROM (
SELECT `si te` AS client, `label` AS `label`,
  CAST(`score` AS DOUBLE) AS score
FROM `clinic`.`scored`
) AS scored_records
) AS searched_records
) AS searched_records
      ) AS placed_records
      GROUP BY client, `label`, cell
    ) AS grouped_records
  ) AS classed_records
  GROUP BY client, class, cell
) AS counted_records
ORDER BY client, class, cell;
