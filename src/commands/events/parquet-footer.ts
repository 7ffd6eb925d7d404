// What the end of a Parquet file of an export says: a file ends after some thousand groups although rows may be left, and
// is a valid file then, so only its footer tells it apart from a whole export.

import { open } from 'node:fs/promises'

const completeKey = 'pennon.export.complete'
/** The length of the footer, and the sign of the format. */
const endBytes = 8

/** @returns false when more rows are left, or when the file has no footer of an export. */
export async function hasWholeExport(path: string): Promise<boolean> {
  const handle = await open(path, 'r')
  try {
    const { size } = await handle.stat()
    if (size < endBytes) return false
    const end = await read(size - endBytes, endBytes)
    const footerBytes = end.readUInt32LE(0)
    if (end.toString('latin1', 4) !== 'PAR1' || footerBytes > size - endBytes) return false
    const footer = await read(size - endBytes - footerBytes, footerBytes)
    // Texts of events stand in the statistics before it, so the last one counts. A text has its kind and length ahead.
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
