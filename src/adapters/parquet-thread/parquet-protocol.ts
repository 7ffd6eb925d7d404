// The messages to the thread that encodes a Parquet file, and the thread's replies.

import type { ParquetColumn, ParquetValue } from '#ports/parquet-files.ts'

export interface ParquetThreadData {
  readonly columns: readonly ParquetColumn[]
}

export type ParquetRequest =
  | { readonly kind: 'rows'; readonly columns: readonly (readonly ParquetValue[])[] }
  | { readonly kind: 'endGroup' }
  | { readonly kind: 'end'; readonly metadata: Readonly<Record<string, string>> }

/** The thread's replies to `endGroup` and `end`, in the order of these messages. */
export type ParquetReply = { readonly bytes: Uint8Array }
