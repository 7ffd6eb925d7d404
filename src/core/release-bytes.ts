/**
 * Frees the memory of bytes that are no longer needed, unless other views may share it. V8 counts memory outside its heap
 * only towards full collections. Without this, the bytes of about twenty large requests would cause such a collection,
 * which blocks the event loop for tens of milliseconds.
 */
export function releaseBytesMemory({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && byteLength === buffer.byteLength) buffer.transfer(0)
}

/** Bytes that own their whole buffer still own all of it when shortened, so that they can be transferred. */
export function shortenBytes(bytes: Uint8Array<ArrayBuffer>, length: number): Uint8Array<ArrayBuffer> {
  if (length === bytes.length) return bytes
  const isWhole = bytes.byteOffset === 0 && bytes.length === bytes.buffer.byteLength
  return isWhole ? new Uint8Array(bytes.buffer.transfer(length)) : bytes.subarray(0, length)
}
