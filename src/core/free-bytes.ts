/**
 * Frees the memory of bytes that are no longer needed, unless other views may share it. V8 counts memory outside its heap
 * only towards full collections. Without this, the bytes of about twenty large requests would cause such a collection,
 * which blocks the event loop for tens of milliseconds.
 */
export function releaseBytesMemory({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && byteLength === buffer.byteLength) buffer.transfer(0)
}
