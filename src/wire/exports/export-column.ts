// What a row of an export consists of. Every format writes the same columns under the same names.

export interface ExportColumn<Row> {
  readonly name: string
  /** `json` is the text of a JSON value, which no format changes; `instant` is epoch ms. */
  readonly kind: 'text' | 'json' | 'instant' | 'boolean' | 'integer'
  /** Null only where there is nothing, as a person without a known time of creation. */
  readonly read: (row: Row) => string | number | boolean | null
}

export interface ExportEncoder<Row> {
  readonly contentType: string
  /** Whether gzip makes the bytes fewer. */
  readonly isText: boolean
  /** What stands before the first row. */
  begin(): string | Uint8Array
  /** Pieces in order; work of more than some milliseconds is divided between them. */
  encode(rows: Iterable<Row>): ExportPieces
  /** Completes the file. @param next where a further file goes on; null when nothing is left. */
  end(next: string | null): ExportPieces
  /** Says within the data that it broke off, where a format can; null where it cannot. */
  brokenOff(reason: ExportBreak): string | null
  /** Whether a file of this format should end here, although more rows are left. */
  isFull?(): boolean
  /** Frees what it holds, after the end or instead of it. */
  close?(): void
}

export type ExportPieces = Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>

export interface ExportBreak {
  readonly code: string
  readonly detail: string
  /** The last row that was written; null when there is none. */
  readonly cursor: string | null
}

export const exportFormats = ['jsonl', 'csv', 'parquet'] as const
export type ExportFormat = (typeof exportFormats)[number]
