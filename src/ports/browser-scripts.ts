// The browser library as pages load it: the files of one installed version of posthog-js, and nothing else.

/** How a body is packed on the way; `identity` is the file as it is. */
export const scriptPackings = ['br', 'gzip'] as const
export type ScriptPacking = (typeof scriptPackings)[number]

/**
 * The names are read once, when this is opened; contents when somebody asks for them. A name that is not in the list is
 * null everywhere, whatever it looks like, so that a client's text never becomes a path.
 */
export interface BrowserScripts {
  /** Version of the library, such as `1.449.2`. */
  readonly version: string
  /** @param name such as `array.js`. @returns null when there is no such file. @throws PortError when it cannot be read. */
  find(name: string): Promise<BrowserScript> | null
}

export interface BrowserScript {
  readonly byteCount: number
  /** A hash of the contents, the same in every process that serves the same file; fit for an entity tag. */
  readonly hash: string
  /** The whole file, read anew: for what is made of it once. */
  read(): Promise<Buffer>
  /** The file in pieces, at the pace of whoever reads them. */
  stream(): NodeJS.ReadableStream
  /** Packed once and kept; null when no more is kept, and the file goes out as it is. */
  packed(packing: ScriptPacking): Promise<Buffer | null>
}
