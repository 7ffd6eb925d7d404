// Reads the footer of an exported Parquet file. A file ends after some thousand row groups even if more rows are left.
// Such a file is valid, so only its footer shows whether the export is complete.

import { open } from 'node:fs/promises'

const completeKey = 'pennon.export.complete'
/** The length of the footer, and the magic bytes of the format. */
const endBytes = 8

/** @returns false when more rows are left, or when the file has no footer of an export. */
export async function isParquetExportComplete(path: string): Promise<boolean> {
  const handle = await open(path, 'r')
  try {
    const { size } = await handle.stat()
    if (size < endBytes) return false
    const end = await read(size - endBytes, endBytes)
    const footerBytes = end.readUInt32LE(0)
    if (end.toString('latin1', 4) !== 'PAR1' || footerBytes > size - endBytes) return false
    const footer = await read(size - endBytes - footerBytes, footerBytes)
    // The statistics before the key may contain text of events, so the last occurrence of the key counts. A type and a
    // length precede the value.
    const at = footer.lastIndexOf(completeKey)
    return (
      at !== -1 &&
      footer
        .subarray(at + completeKey.length + 2)
        .subarray(0, 4)
        .toString('latin1') === 'true'
    )
  } finally {
    await handle.close()
  }

  async function read(position: number, length: number): Promise<Buffer> {
    const bytes = Buffer.alloc(length)
    await handle.read(bytes, 0, length, position)
    return bytes
  }
}
