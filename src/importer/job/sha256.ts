import { createHash, hash } from 'node:crypto'
import { createReadStream } from 'node:fs'

export function sha256Hex(data: string | Uint8Array): string {
  return hash('sha256', data)
}

/** @throws an AbortError when the signal is aborted. */
export async function computeFileSha256(path: string, signal?: AbortSignal): Promise<string> {
  const sum = createHash('sha256')
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20, ...(signal && { signal }) }))
    sum.update(chunk as Buffer)
  return sum.digest('hex')
}
