// The screens: the web page of the private API, as built by `web/build.ts`.

export type AssetEncoding = 'br' | 'gzip'

export interface ScreenAsset {
  readonly contentType: string
  /** The file as browsers use it. Callers share the buffer, so it must not be changed. */
  readonly bytes: Buffer
  readonly encoded: Readonly<Record<AssetEncoding, Buffer>>
}

/** Nothing of a client's address becomes a path: assets are found by name in a list that is read with each build. */
export interface Screens {
  /**
   * The page of the newest build, in pieces between which a nonce belongs; null while there is no build.
   * @throws PortError if it cannot be read.
   */
  readPage(): Promise<readonly string[] | null>
  /**
   * @param name such as `index-D93q5LGH.js`, of this build or of one before, which open tabs still use.
   * @returns null for an unknown name.
   * @throws PortError if it cannot be read.
   */
  readAsset(name: string): Promise<ScreenAsset | null>
}
