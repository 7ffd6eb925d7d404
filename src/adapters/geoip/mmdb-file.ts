// A file in the MaxMind DB format, version 2: a search tree over address bits, and records that its leaves point to. Reads
// the file in pages, of which a few MiB are cached, instead of holding the whole file
// (docs/decisions/0013-geoip-read-in-pages.md). `city-location.ts` interprets the records.

import type { FilePages } from './file-pages.ts'

/**
 * A record's value. `uint64`, `uint128` and bytes do not occur in the fields that we read: they are skipped as null.
 */
export type MmdbValue = string | number | boolean | null | readonly MmdbValue[] | MmdbMap
export type MmdbMap = ReadonlyMap<string, MmdbValue>

export interface MmdbMetadata {
  /** Such as `GeoLite2-City`. */
  readonly databaseType: string
  /** Epoch ms. */
  readonly builtAtMs: number
  readonly ipVersion: 4 | 6
}

const metadataMarker = Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1')
const metadataBytesMax = 128 * 1024
/** Zero bytes between the tree and the records. */
const separatorBytes = 16
/** Limits for one record, against damaged files: real records are 4 deep and have about 150 values. */
const depthMax = 16
const valueCountMax = 10_000
const knownKeyCountMax = 200
const pointerBases = [0, 2_048, 526_336, 0] as const

export class MmdbFile {
  readonly metadata: MmdbMetadata
  readonly #pages: FilePages
  readonly #nodeCount: number
  readonly #recordBits: number
  readonly #nodeBytes: number
  /** The position at which the records start; pointers count from there. */
  #dataStart = 0
  readonly #ipv4Root: number
  /** The keys that were read, by position in the file: each key is in the file only once, and records point to it. */
  readonly #knownKeys = new Map<number, string>()
  #position = 0
  #valuesLeft = 0

  /** @throws Error with the reason when the file does not have this format. */
  constructor(pages: FilePages) {
    this.#pages = pages
    const start = findMetadataStart(pages)
    this.#dataStart = start
    const metadata = this.#recordAt(start)
    if (!(metadata instanceof Map)) throw createDamageError('its metadata')
    const version = metadata.get('ip_version')
    const nodeCount = metadata.get('node_count')
    const recordBits = metadata.get('record_size')
    const isUsable =
      metadata.get('binary_format_major_version') === 2 &&
      (version === 4 || version === 6) &&
      typeof nodeCount === 'number' &&
      (recordBits === 24 || recordBits === 28 || recordBits === 32)
    if (!isUsable) throw createDamageError('its metadata')
    const builtAt = metadata.get('build_epoch')
    this.metadata = {
      databaseType: String(metadata.get('database_type')),
      builtAtMs: typeof builtAt === 'number' ? builtAt * 1_000 : 0,
      ipVersion: version,
    }
    this.#nodeCount = nodeCount
    this.#recordBits = recordBits
    this.#nodeBytes = recordBits / 4
    this.#dataStart = nodeCount * this.#nodeBytes + separatorBytes
    if (this.#dataStart > start) throw createDamageError('its size')
    this.#knownKeys.clear()
    this.#ipv4Root = version === 4 ? 0 : this.#ipv4Subtree()
  }

  /**
   * The record of an address; null when the file has none. An IPv4 address is found in files of either version.
   * @param address 4 or 16 bytes.
   * @throws Error when the file is damaged or can no longer be read.
   */
  find(address: Uint8Array): MmdbValue {
    const isIpv4 = address.length === 4
    if (!isIpv4 && this.metadata.ipVersion === 4) return null
    const nodeCount = this.#nodeCount
    const bitCount = address.length * 8
    let node = isIpv4 ? this.#ipv4Root : 0
    for (let bit = 0; bit < bitCount && node < nodeCount; bit++) {
      node = this.#child(node, (address[bit >> 3]! >> (7 - (bit & 7))) & 1)
    }
    return node <= nodeCount ? null : this.#recordAt(node - nodeCount - separatorBytes + this.#dataStart)
  }

  /** Finds the tree node of all IPv4 addresses, which are stored as addresses whose first 96 bits are zero. */
  #ipv4Subtree(): number {
    let node = 0
    for (let bit = 0; bit < 96 && node < this.#nodeCount; bit++) node = this.#child(node, 0)
    return node
  }

  #child(node: number, bit: number): number {
    const pages = this.#pages
    const nodeBytes = this.#nodeBytes
    const position = node * nodeBytes
    if (this.#recordBits === 24) return pages.uintAt(position + bit * 3, 3)
    if (this.#recordBits === 32) return pages.uintAt(position + bit * 4, 4)
    const shared = pages.byteAt(position + 3)
    const high = bit === 0 ? shared >> 4 : shared & 0x0f
    return high * 2 ** 24 + pages.uintAt(position + bit * 4, 3)
  }

  #recordAt(position: number): MmdbValue {
    this.#position = position
    this.#valuesLeft = valueCountMax
    return this.#decode(0)
  }

  #decode(depth: number): MmdbValue {
    if (depth > depthMax || this.#valuesLeft-- === 0) throw createDamageError('a record')
    const control = this.#pages.byteAt(this.#position++)
    const type = control >> 5
    if (type === 1) {
      const target = this.#pointer(control)
      const after = this.#position
      this.#position = target
      const value = this.#decode(depth + 1)
      this.#position = after
      return value
    }
    return this.#decodeAs(type === 0 ? 7 + this.#pages.byteAt(this.#position++) : type, this.#size(control), depth)
  }

  #decodeAs(type: number, size: number, depth: number): MmdbValue {
    switch (type) {
      case 2:
        return this.#pages.textAt(this.#skip(size), size)
      case 3:
        return this.#pages.copyOf(this.#skip(8), 8).readDoubleBE(0)
      case 5:
      case 6:
        if (size > 4) throw createDamageError('a number')
        return this.#pages.uintAt(this.#skip(size), size)
      case 7:
        return this.#decodeMap(size, depth)
      case 8:
        if (size > 4) throw createDamageError('a number')
        return size < 4 ? this.#pages.uintAt(this.#skip(size), size) : this.#pages.uintAt(this.#skip(4), 4) | 0
      case 9:
        // The only number of this type that we read is `build_epoch`; its value fits 6 bytes for the next million
        // years.
        return size <= 6 ? this.#pages.uintAt(this.#skip(size), size) : this.#passOver(size)
      case 4:
      case 10:
        return this.#passOver(size)
      case 11: {
        const items: MmdbValue[] = []
        for (let index = 0; index < size; index++) items.push(this.#decode(depth + 1))
        return items
      }
      case 14:
        return size !== 0
      case 15:
        return this.#pages.copyOf(this.#skip(4), 4).readFloatBE(0)
      default:
        throw createDamageError('a record')
    }
  }

  #decodeMap(size: number, depth: number): MmdbMap {
    const map = new Map<string, MmdbValue>()
    for (let index = 0; index < size; index++) map.set(this.#decodeKey(depth), this.#decode(depth + 1))
    return map
  }

  #decodeKey(depth: number): string {
    const start = this.#position
    const control = this.#pages.byteAt(start)
    if (control >> 5 === 1) {
      this.#position = start + 1
      const target = this.#pointer(control)
      const known = this.#knownKeys.get(target)
      if (known !== undefined) return known
      this.#position = start
      const key = this.#decode(depth + 1)
      if (typeof key !== 'string') throw createDamageError('a key')
      if (this.#knownKeys.size < knownKeyCountMax) this.#knownKeys.set(target, key)
      return key
    }
    const key = this.#decode(depth + 1)
    if (typeof key !== 'string') throw createDamageError('a key')
    return key
  }

  /** Control byte `001SSVVV`: S chooses how many bytes follow, V are the highest bits unless all four follow. */
  #pointer(control: number): number {
    const sizeCode = (control >> 3) & 3
    const following = this.#pages.uintAt(this.#skip(sizeCode + 1), sizeCode + 1)
    const high = sizeCode === 3 ? 0 : (control & 7) * 2 ** (8 * (sizeCode + 1))
    return this.#dataStart + pointerBases[sizeCode]! + high + following
  }

  #size(control: number): number {
    const size = control & 0x1f
    if (size < 29) return size
    const lengthBytes = size - 28
    const more = this.#pages.uintAt(this.#skip(lengthBytes), lengthBytes)
    return more + (size === 29 ? 29 : size === 30 ? 285 : 65_821)
  }

  /** Advances the position by `size` and returns the previous position. */
  #skip(size: number): number {
    const before = this.#position
    this.#position = before + size
    return before
  }

  #passOver(size: number): null {
    this.#skip(size)
    return null
  }
}

function findMetadataStart(pages: FilePages): number {
  const tailBytes = Math.min(pages.byteCount, metadataBytesMax)
  const tail = pages.copyOf(pages.byteCount - tailBytes, tailBytes)
  const index = tail.lastIndexOf(metadataMarker)
  if (index === -1) throw new Error('it is not a MaxMind DB file')
  return pages.byteCount - tailBytes + index + metadataMarker.length
}

function createDamageError(what: string): Error {
  return new Error(`${what} cannot be read: the file is damaged`)
}
