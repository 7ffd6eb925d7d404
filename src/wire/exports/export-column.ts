// The columns of exports. Every format writes the same columns under the same names.

export interface ExportColumn<Row> {
  readonly name: string
  /** `json` is the text of a JSON value, which no format changes; `instant` is epoch ms. */
  readonly kind: 'text' | 'json' | 'instant' | 'boolean' | 'integer'
  /** Null only for missing values, such as an unknown creation time. */
  readonly read: (row: Row) => string | number | boolean | null
}

export interface ExportEncoder<Row> {
  readonly contentType: string
  /** Whether gzip makes the file smaller. */
  readonly isText: boolean
  /** Text or bytes before the first row. */
  begin(): string | Uint8Array
  /** Encodes rows, in pieces to be joined in order; work that takes more than a few milliseconds is split among them. */
  encode(rows: Iterable<Row>): EncodedPieces
  /** Completes the file. @param next the cursor of the next file; null when nothing is left. */
  end(next: string | null): EncodedPieces
  /** The text that reports within the data that the export broke off; null if the format cannot express it. */
  brokenOff(reason: ExportBreak): string | null
  /** Whether a file of this format should end here, although more rows are left. */
  isFull?(): boolean
  /** Frees what the encoder holds, after `end` or instead of it. */
  close?(): void
}

export type EncodedPieces = Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>

export interface ExportBreak {
  readonly code: string
  readonly detail: string
  /** The cursor of the last written row; null before the first row. */
  readonly cursor: string | null
}

export const exportFormats = ['jsonl', 'csv', 'parquet'] as const
export type ExportFormat = (typeof exportFormats)[number]
