/**
 * Frees the memory of bytes that are no longer needed, unless other views may share it. Memory outside V8's heap counts
 * only towards the next full garbage collection. Without this, the bytes of about twenty large requests would cause such a
 * collection, which blocks the event loop for tens of milliseconds.
 */
export function releaseBytesMemory({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && byteLength === buffer.byteLength) buffer.transfer(0)
}

/** Shortens bytes. If they own their whole buffer, so does the result, so that it can be transferred. */
export function shortenBytes(bytes: Uint8Array<ArrayBuffer>, length: number): Uint8Array<ArrayBuffer> {
  if (length === bytes.length) return bytes
  const isWhole = bytes.byteOffset === 0 && bytes.length === bytes.buffer.byteLength
  return isWhole ? new Uint8Array(bytes.buffer.transfer(length)) : bytes.subarray(0, length)
}
