// Objects of a bucket or of a list of URLs as parts. Each is downloaded unchanged; an interrupted download resumes as long
// as the object keeps its version. Source: docs/wire/import.md §2.1, §5 complaint 6.

import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { type ObjectBytes, type ObjectSource, ObjectSourceRefusal, type SourceObject } from '#ports/object-source.ts'
import { PortError } from '#ports/port-error.ts'
import { openFlags } from '../read/link-safe-files.ts'
import { BrokenAnswer, convertToFetchFault, FetchStop, FetchWait } from './fetch-faults.ts'
import type { FetchPart, FetchSource, PartTools } from './fetch-source.ts'
import { preparePartFile } from './part-file.ts'

/** At most this many bytes are downloaded again after a crash. */
const syncEveryBytes = 16 * 2 ** 20

export interface ObjectPartsOptions {
  /** The prefix of the listed keys; its folders are omitted from file names. */
  readonly prefix?: string
  /** Whether the user wrote the list, so that a removed line means that its object is not wanted. */
  readonly isWritten?: boolean
}

export function createObjectFetchSource(
  source: ObjectSource,
  { prefix = '', isWritten = false }: ObjectPartsOptions = {},
): FetchSource {
  const folder = prefix.slice(0, prefix.lastIndexOf('/') + 1)
  return {
    limits: { perSecond: null, perHour: null, atOnce: 4 },
    advice: 'Download the file by other means, and import it from its folder.',
    callsPerPart: 1,
    dropsUnlisted: isWritten,
    notes: [],
    listParts: async function* (signal) {
      try {
        for await (const object of source.list(signal)) yield toFetchPart(object, folder)
      } catch (cause) {
        throw toFetchFault(cause)
      }
    },
    splitPart: () => null,
    fetchPart: (part, tools) => fetchObject(part, source, tools),
    [Symbol.dispose]: () => source.close(),
  }
}

function toFetchPart({ key, bytes, version }: SourceObject, folder: string): FetchPart {
  return {
    id: toFileName(key.startsWith(folder) ? key.slice(folder.length) : key),
    asks: { key, version, bytes },
    bytes,
    isUnseen: version === null && bytes === null,
  }
}

const nameBytesMax = 160

/**
 * A path for a key: below the folder, deterministic, and different for every key. Special characters are percent-encoded,
 * and long names end in a hash.
 */
export function toFileName(key: string): string {
  const names = key.split('/').map(name => {
    const plain = encodeURIComponent(name).replace(
      /[!'()*]/g,
      char => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
    )
    if (/^\.*$/.test(plain)) return `%${plain.replaceAll('.', '2E')}`
    // Files are called `.part` during their download.
    const safe = plain.replace(/\.part$/, '%2Epart')
    if (safe.length <= nameBytesMax) return safe
    const end = /(\.[a-zA-Z0-9]{1,8}){1,2}$/.exec(safe)?.[0] ?? ''
    return `${safe.slice(0, 80)}~${createHash('sha256').update(name).digest('hex').slice(0, 32)}${end}`
  })
  return names.join('/')
}

async function fetchObject({ asks }: FetchPart, source: ObjectSource, tools: PartTools): Promise<boolean> {
  const object = asks as unknown as SourceObject
  await tools.takeCall()
  try {
    const opened = await source.open(object, object.version === null ? 0 : tools.savedBytes, tools.signal)
    for (const note of opened.notes ?? []) tools.warn(note)
    await appendToFile(opened, object, tools)
    return true
  } catch (cause) {
    throw toFetchFault(cause)
  }
}

/** Appends to the file from `startsAt`, and stores how many bytes are synced. */
async function appendToFile(
  { bytes, startsAt }: ObjectBytes,
  { key, bytes: listedBytes }: SourceObject,
  tools: PartTools,
): Promise<void> {
  const { path } = tools.file
  if (startsAt === 0) await preparePartFile(tools.file)
  const handle = await open(path, startsAt === 0 ? openFlags.create : openFlags.change, 0o600)
  let [at, synced] = [startsAt, startsAt]
  const syncAndSave = async () => {
    await handle.sync()
    tools.saveBytes(at)
    synced = at
  }
  const discard = (reason: string) => {
    tools.saveBytes(0)
    return new BrokenAnswer(reason)
  }
  try {
    if ((await handle.stat()).size < startsAt) throw discard('the bytes fetched before are gone')
    // Drops bytes beyond the last sync, which may be garbage after a crash.
    await handle.truncate(startsAt)
    if (startsAt === 0) tools.saveBytes(0)
    for await (const chunk of bytes) {
      // Checked before the chunk is written, since an endless response would fill the disk.
      if (listedBytes !== null && at + chunk.length > listedBytes)
        throw discard(`${key} has more bytes than the ${listedBytes} of its list`)
      tools.willWrite(chunk.length)
      for (const end = at + chunk.length; at < end; ) {
        const { bytesWritten } = await handle.write(chunk, chunk.length - (end - at), end - at, at)
        at += bytesWritten
      }
      tools.received(chunk.length)
      if (at - synced >= syncEveryBytes) await syncAndSave()
    }
    if (listedBytes !== null && at < listedBytes) throw discard(`${key} has ${at} bytes instead of ${listedBytes}`)
    await syncAndSave()
  } catch (cause) {
    // If this sync fails too, its bytes are fetched again; the first error is reported.
    if (at > synced && !(cause instanceof BrokenAnswer)) await syncAndSave().catch(() => undefined)
    throw cause
  } finally {
    await handle.close()
  }
}

function toFetchFault(cause: unknown): unknown {
  if (cause instanceof ObjectSourceRefusal) return new FetchStop(cause.message)
  // A bucket may contain both `a` and `a/b`; a folder cannot.
  if (['EEXIST', 'EISDIR', 'ENOTDIR'].includes((cause as { code?: string }).code ?? ''))
    return new FetchStop(
      'The name of one object is the folder of another. Fetch them with two prefixes into two folders.',
    )
  if (!(cause instanceof PortError)) return convertToFetchFault(cause)
  const detail = cause.cause instanceof Error ? cause.cause.message : cause.code
  if (cause.code === 'conflict')
    return new FetchStop(`${detail} since it was listed. Start again to fetch it as it is now.`)
  return new FetchWait(detail === '' ? 'the storage does not answer' : detail)
}
