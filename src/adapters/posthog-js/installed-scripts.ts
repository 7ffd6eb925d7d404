// The scripts of the installed `posthog-js` package. A file is in memory only while an answer uses it, and only once. Its
// compressed form, which nearly every browser accepts, is cached, up to a limit. A stub replaces the one file that the
// package leaves out.

import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { BrowserScript, BrowserScripts, ScriptCompression } from '#ports/browser-scripts.ts'
import { PortError } from '#ports/port-error.ts'

export interface InstalledScriptsOptions {
  /** The most bytes of compressed files that are cached. Further files are sent uncompressed. */
  readonly keptBytesMax?: number
}

/**
 * More than the 5.4 MB of all scripts of version 1.449.2 in both compressed forms; the two scripts that each page loads
 * take 0.3 MB.
 */
const keptBytesDefault = 8 * 1024 * 1024

/**
 * The toolbar needs a login to PostHog and is not in the package; a page that tries to open it gets this instead, so
 * that nothing fails. Source: docs/wire/clients.md 10.2.
 */
const stubs: ReadonlyMap<string, Buffer> = new Map([
  ['toolbar.js', Buffer.from('window.ph_load_toolbar = window.ph_load_toolbar || function () {}\n')],
])

/** @throws when the package is missing: the installation is broken. */
export function openInstalledScripts(options: InstalledScriptsOptions = {}): BrowserScripts {
  const folder = findPackageFolder('posthog-js')
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string }
  const dist = join(folder, 'dist')
  const names = new Set(readdirSync(dist).filter(name => /^[a-z][\w.-]*\.js(?:\.map)?$/.test(name)))
  if (!names.has('array.js'))
    throw new Error('the package posthog-js has no dist/array.js: the installation is incomplete')
  const opened = new Map<string, Promise<BrowserScript>>()
  const budget = { bytes: options.keptBytesMax ?? keptBytesDefault }

  return {
    version,
    findScript: name => {
      const known = opened.get(name)
      if (known !== undefined) return known
      const stub = stubs.get(name)
      if (stub === undefined && !names.has(name)) return null
      const bytes = stub === undefined ? shareFileReads(join(dist, name)) : async () => stub
      const script = buildScript(bytes, name.endsWith('.map') ? noBudget : budget)
      opened.set(name, script)
      // Forgets a file that could not be read, since it may be readable at the next request.
      script.catch(() => opened.delete(name))
      return script
    },
  }
}

/**
 * The cache budget of source maps, which are half of all bytes and only for a browser's developer tools: they are not
 * cached.
 */
const noBudget = { bytes: 0 }

/** @returns a function that reads the file, or returns the bytes of an earlier read while they are still in use. */
function shareFileReads(path: string): () => Promise<Buffer> {
  let held: WeakRef<Buffer> | null = null
  let reading: Promise<Buffer> | null = null
  return async () => {
    const bytes = held?.deref()
    if (bytes !== undefined) return bytes
    reading ??= read()
    return reading
  }

  async function read(): Promise<Buffer> {
    try {
      const bytes = await readFile(path)
      held = new WeakRef(bytes)
      return bytes
    } catch (cause) {
      throw new PortError('browser-scripts', 'unavailable', cause)
    } finally {
      reading = null
    }
  }
}

async function buildScript(bytes: () => Promise<Buffer>, budget: { bytes: number }): Promise<BrowserScript> {
  const contents = await bytes()
  const packings = new Map<ScriptCompression, Promise<Buffer | null>>()
  return {
    readBytes: bytes,
    byteCount: contents.length,
    hash: createHash('sha256').update(contents).digest('base64url').slice(0, 22),
    readCompressed: packing => {
      let packed = packings.get(packing)
      if (packed === undefined) {
        if (budget.bytes <= 0) return Promise.resolve(null)
        packed = bytes().then(whole => compressWithinBudget(whole, packing, budget))
        packings.set(packing, packed)
        packed.catch(() => packings.delete(packing))
      }
      return packed
    },
  }
}

const gzipInPool = promisify(gzip)
const brotliInPool = promisify(brotliCompress)
/**
 * Compressing the largest script of a page takes 0.1 s of a pool thread with quality 9; quality 11 takes 1.5 s and saves 4
 * %.
 */
const brotliQuality = 9

/**
 * Compresses a file and takes its size from the budget; null when it exceeds that. The result is kept, so no file is
 * compressed twice.
 */
async function compressWithinBudget(
  whole: Buffer,
  packing: ScriptCompression,
  budget: { bytes: number },
): Promise<Buffer | null> {
  const packed =
    packing === 'gzip'
      ? await gzipInPool(whole, { level: 9 })
      : await brotliInPool(whole, { params: { [constants.BROTLI_PARAM_QUALITY]: brotliQuality } })
  if (packed.length > budget.bytes) return null
  budget.bytes -= packed.length
  return packed
}

/** The package may export only its entry, so its folder is searched for upwards from there. */
function findPackageFolder(name: string): string {
  let folder = dirname(fileURLToPath(import.meta.resolve(name)))
  for (;;) {
    const manifest = join(folder, 'package.json')
    if (existsSync(manifest) && (JSON.parse(readFileSync(manifest, 'utf8')) as { name?: string }).name === name) {
      return folder
    }
    const parent = dirname(folder)
    if (parent === folder) throw new Error(`the package ${name} is not installed: the installation is incomplete`)
    folder = parent
  }
}
