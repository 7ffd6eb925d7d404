// The browser library that pages load: the files of one installed version of posthog-js.

/** The content codings with which a file can be compressed. */
export const scriptCompressions = ['br', 'gzip'] as const
export type ScriptCompression = (typeof scriptCompressions)[number]

/**
 * File names are listed once, on opening; contents are read on demand. `findScript` returns null for a name that is not in
 * the list, so a client's text never becomes a path.
 */
export interface BrowserScripts {
  /** Version of the library, such as `1.449.2`. */
  readonly version: string
  /** @param name such as `array.js`. @returns null for an unknown name. @throws PortError if the file is unreadable. */
  findScript(name: string): Promise<BrowserScript> | null
}

export interface BrowserScript {
  readonly byteCount: number
  /** A hash of the contents, the same in every process that serves the same file; fit for an entity tag. */
  readonly hash: string
  /** The whole file. Concurrent callers share the buffer, so it must not be changed. */
  readBytes(): Promise<Buffer>
  /** The file, compressed once, then kept in memory. Null if it is not compressed or the cache is full: send it plain. */
  readCompressed(packing: ScriptCompression): Promise<Buffer | null>
}
