// The table name in the name of a file.

const endings = /\.(?:gz|gzip|zst|zstd|zip|jsonl?|ndjson|[ct]sv|txt|avro|parquet|pq|snappy|deflate)$/i

/** @returns the name without folder, archive and extensions: `pageviews` for `heap.zip!2024/pageviews.json.gz`. */
export function parseTableName(object: string): string | null {
  let name = object.slice(Math.max(object.lastIndexOf('/'), object.lastIndexOf('!')) + 1)
  while (endings.test(name)) name = name.replace(endings, '')
  return name === '' ? null : name
}
