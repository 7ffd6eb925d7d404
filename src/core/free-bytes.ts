/**
 * Frees memory that nobody needs any more, unless the view shares it with others. V8 counts memory outside its heap only
 * towards full collections: left to it, the bytes of some twenty large requests cause one, which holds an event loop for
 * tens of milliseconds.
 */
export function freeBytes({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && byteLength === buffer.byteLength) buffer.transfer(0)
}
