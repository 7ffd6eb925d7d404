// Writes Parquet files one group of rows at a time. A group takes a tenth of a second of CPU time or more, so the work must
// not happen on the event loop.

export interface ParquetColumn {
  readonly name: string
  /** An `instant` is epoch ms, and may be null; values of the other kinds may not. `json` is stored as text. */
  readonly kind: 'text' | 'json' | 'instant' | 'boolean' | 'integer'
}

export type ParquetValue = string | number | boolean | null

/** A file that is being written. Once writing has failed, every method rejects. */
export interface ParquetFile {
  /** Adds some rows as columns, in the order of the file's columns. The rows are encoded at the end of their group. */
  add(columns: readonly (readonly ParquetValue[])[]): void
  /** Ends the group of the rows that were added since the last group. @returns bytes that earlier calls did not return. */
  endGroup(): Promise<Uint8Array>
  /** @returns the rest of the bytes. @param metadata entries that the footer has in addition to the columns. */
  end(metadata: Readonly<Record<string, string>>): Promise<Uint8Array>
  /** Frees the resources of the file, whether it is complete or not. */
  close(): void
}

export type OpenParquetFile = (columns: readonly ParquetColumn[]) => ParquetFile
