// The screens in the folder that `web/build.ts` writes. A build that is made while the instance runs is served from the
// next page on. Assets are read when they are first requested, and then kept: they are few, and their names contain their
// hash.

import { readdir, readFile, stat } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { PortError } from '#ports/port-error.ts'
import type { ScreenAsset, Screens } from '#ports/screens.ts'

interface Build {
  /** When it became the newest build; epoch ms. */
  readonly madeAtMs: number
  readonly page: readonly string[]
  /** Folders of the assets of this build and of those before, by file name. */
  readonly folders: ReadonlyMap<string, string>
}

const contentTypes: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}
/** `web/build.ts` puts it where the nonce of an answer belongs. */
const noncePlaceholder = 'CSP_NONCE'

/** @param folder `web/dist`; it may be missing. */
export function openBuiltScreens(folder: string): Screens {
  let build: Build | null = null
  const assets = new Map<string, Promise<ScreenAsset>>()

  return {
    readPage: async () => {
      await followBuilds()
      return build?.page ?? null
    },
    readAsset: async name => {
      if (build?.folders.has(name) !== true) await followBuilds()
      const assetFolder = build?.folders.get(name)
      if (assetFolder === undefined) return null
      const asset = assets.get(name) ?? readAsset(join(assetFolder, name))
      assets.set(name, asset)
      // It may be readable at the next request.
      asset.catch(() => assets.delete(name))
      return asset
    },
  }

  /** Reads the names and the page of the newest build, if there is another than before. */
  async function followBuilds(): Promise<void> {
    try {
      const current = join(folder, 'current.json')
      const { mtimeMs } = await stat(current)
      if (build?.madeAtMs === mtimeMs) return
      const { stamp } = JSON.parse(await readFile(current, 'utf8')) as { stamp: string }
      const page = (await readFile(join(folder, stamp, 'index.html'), 'utf8')).split(noncePlaceholder)
      build = { madeAtMs: mtimeMs, page, folders: await listAssets() }
      for (const name of assets.keys()) if (!build.folders.has(name)) assets.delete(name)
    } catch (cause) {
      // Without a build there is nothing to serve; and what is served stays, should the folder be removed.
      if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') throw new PortError('screens', 'unavailable', cause)
    }
  }

  async function listAssets(): Promise<Map<string, string>> {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true })
    return new Map(
      entries
        .filter(({ name, parentPath }) => parentPath.endsWith('assets') && extname(name) in contentTypes)
        .map(({ name, parentPath }) => [name, parentPath]),
    )
  }
}

async function readAsset(path: string): Promise<ScreenAsset> {
  try {
    const [bytes, br, gzip] = await Promise.all(['', '.br', '.gz'].map(ending => readFile(path + ending)))
    return { contentType: contentTypes[extname(path)]!, bytes: bytes!, encoded: { br: br!, gzip: gzip! } }
  } catch (cause) {
    throw new PortError('screens', 'unavailable', cause)
  }
}
