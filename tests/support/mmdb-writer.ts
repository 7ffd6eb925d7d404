// Writes a small file in the MaxMind DB format: networks, each with a record. Repeated texts become pointers, as in
// real files, so that a reader has to follow them.

export type MmdbInput = string | number | boolean | Float | readonly MmdbInput[] | { readonly [key: string]: MmdbInput }

/** A number stored in 32 bits, as the flat files store coordinates. */
export class Float {
  readonly value: number
  constructor(value: number) {
    this.value = value
  }
}

export interface MmdbOptions {
  readonly databaseType?: string
  readonly ipVersion: 4 | 6
  readonly recordSize?: 24 | 28 | 32
  /** Epoch seconds. */
  readonly buildEpoch?: number
  /**
   * The bytes of a network and its prefix length in bits. In a file of version 6, IPv4 is 12 zero bytes and the
   * address.
   */
  readonly networks: readonly (readonly [bytes: readonly number[], bits: number, record: MmdbInput])[]
}

interface Node {
  number: number
  readonly children: [Node | number | null, Node | number | null]
}

export function writeMmdb(options: MmdbOptions): Buffer {
  const { networks, ipVersion, recordSize = 24, databaseType = 'GeoLite2-City', buildEpoch = 1_780_000_000 } = options
  const data = new DataSection()
  const nodes: Node[] = []
  const root = newNode(nodes)
  for (const [bytes, bits, record] of networks) {
    const offset = data.add(record)
    let node = root
    for (let bit = 0; bit < bits; bit++) {
      const side = ((bytes[bit >> 3]! >> (7 - (bit & 7))) & 1) as 0 | 1
      if (bit === bits - 1) node.children[side] = offset
      else {
        const next = node.children[side]
        const child = next !== null && typeof next === 'object' ? next : newNode(nodes)
        node.children[side] = child
        node = child
      }
    }
  }
  const recordOf = (child: Node | number | null) =>
    child === null ? nodes.length : typeof child === 'number' ? nodes.length + 16 + child : child.number
  const tree = nodes.map(({ children }) => nodeBytes(recordOf(children[0]), recordOf(children[1]), recordSize))
  const metadata = new DataSection()
  metadata.add({
    binary_format_major_version: 2,
    binary_format_minor_version: 0,
    build_epoch: buildEpoch,
    database_type: databaseType,
    ip_version: ipVersion,
    languages: ['en'],
    node_count: nodes.length,
    record_size: recordSize,
  })
  const marker = Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1')
  return Buffer.concat([...tree, Buffer.alloc(16), data.bytes(), marker, metadata.bytes()])
}

function newNode(nodes: Node[]): Node {
  const node: Node = { number: nodes.length, children: [null, null] }
  nodes.push(node)
  return node
}

function nodeBytes(left: number, right: number, recordSize: 24 | 28 | 32): Buffer {
  const bytes = Buffer.alloc(recordSize / 4)
  if (recordSize === 32) {
    bytes.writeUInt32BE(left, 0)
    bytes.writeUInt32BE(right, 4)
    return bytes
  }
  bytes.writeUIntBE(left % 2 ** 24, 0, 3)
  bytes.writeUIntBE(right % 2 ** 24, recordSize === 24 ? 3 : 4, 3)
  if (recordSize === 28) bytes[3] = (Math.floor(left / 2 ** 24) << 4) | Math.floor(right / 2 ** 24)
  return bytes
}

class DataSection {
  readonly #parts: Buffer[] = []
  #length = 0
  readonly #texts = new Map<string, number>()

  bytes(): Buffer {
    return Buffer.concat(this.#parts)
  }

  /** @returns the position of the value. */
  add(value: MmdbInput): number {
    const start = this.#length
    this.#write(value)
    return start
  }

  #write(value: MmdbInput): void {
    if (typeof value === 'string') this.#writeText(value)
    else if (typeof value === 'boolean') this.#push(control(14, value ? 1 : 0))
    else if (typeof value === 'number') this.#writeNumber(value)
    else if (value instanceof Float) {
      const bytes = Buffer.alloc(4)
      bytes.writeFloatBE(value.value)
      this.#push(control(15, 4), bytes)
    } else if (Array.isArray(value)) {
      this.#push(control(11, value.length))
      for (const item of value as readonly MmdbInput[]) this.#write(item)
    } else {
      const entries = Object.entries(value)
      this.#push(control(7, entries.length))
      for (const [key, item] of entries) {
        this.#writeText(key)
        this.#write(item)
      }
    }
  }

  #writeText(text: string): void {
    const known = this.#texts.get(text)
    if (known !== undefined) {
      this.#push(pointer(known))
      return
    }
    this.#texts.set(text, this.#length)
    const bytes = Buffer.from(text)
    this.#push(control(2, bytes.length), bytes)
  }

  #writeNumber(value: number): void {
    const bytes = Buffer.alloc(Number.isInteger(value) ? 4 : 8)
    if (bytes.length === 8) {
      bytes.writeDoubleBE(value)
      this.#push(control(3, 8), bytes)
      return
    }
    if (value < 0) bytes.writeInt32BE(value)
    else bytes.writeUInt32BE(value)
    this.#push(control(value < 0 ? 8 : 6, 4), bytes)
  }

  #push(...buffers: readonly Buffer[]): void {
    this.#parts.push(...buffers)
    for (const { length } of buffers) this.#length += length
  }
}

function control(type: number, size: number): Buffer {
  const head = type < 8 ? [type << 5] : [0, type - 7]
  if (size < 29) head[0]! |= size
  else if (size < 285) {
    head[0]! |= 29
    head.push(size - 29)
  } else {
    head[0]! |= 30
    head.push((size - 285) >> 8, (size - 285) & 0xff)
  }
  return Buffer.from(head)
}

function pointer(target: number): Buffer {
  if (target < 2_048) return Buffer.from([0x20 | (target >> 8), target & 0xff])
  const rest = target - 2_048
  return Buffer.from([0x28 | (rest >> 16), (rest >> 8) & 0xff, rest & 0xff])
}
