// The connections of a process, bounded below its limit of open files: at that limit nothing can be opened any more, not
// even by the thread that writes the log. At the bound the address with the most connections loses one, so that many
// connections from one address cost that address, and never the next newcomer. One connection may have some requests under way
// at a time, and is ended when it has more.

import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { networkOf, withoutMapping } from '#wire/address/client-address.ts'

/** For the files of the stores, of the decode threads and of a query's connections: an idle front has some 60 open. */
const filesReserved = 256
/** Each may hold 16 KiB of headers that have not come to their end, so all of them 256 MiB. */
const connectionsMax = 16_384

/**
 * How many connections a process may keep.
 * @param openFilesMax its limit of open files; null for no limit.
 */
export function connectionBound(openFilesMax: number | null): number {
  if (openFilesMax === null) return connectionsMax
  return Math.min(connectionsMax, Math.max(openFilesMax - filesReserved, Math.floor(openFilesMax / 2)))
}

/**
 * `idle`: between two requests. `crowded`: its address has most. `refused`: a new one of the address that has most.
 * `pipelined`: it had too many requests under way.
 */
export type ConnectionEnd = 'idle' | 'crowded' | 'refused' | 'pipelined'

/**
 * How many requests of one connection may be unanswered. Node hands over all requests that one read of 64 KiB brings before
 * anything else gets a turn, and those may be two thousand. No SDK sends a second request before the first one's answer.
 */
export const unansweredMax = 16

interface Connection {
  readonly socket: Socket
  readonly network: Network
  /**
   * The last ones; null before the first, and once `release` was called. Those of all idle connections would otherwise be
   * copied by each collection of young objects.
   */
  request: IncomingMessage | null
  response: ServerResponse | null
  isAnswered: boolean
  /** The answers before the last one that are under way too, oldest first: answers of a connection keep their order. */
  readonly earlier: ServerResponse[]
}

const connectionOf = Symbol('connection')

interface BoundSocket extends Socket {
  [connectionOf]?: Connection
}

/** The connections of one address, in the order in which they are looked at. */
interface Network {
  readonly key: string
  readonly connections: Set<Connection>
}

/** How many connections of the fullest networks a new one may make us look at; the next one looks at the next ones. */
const looksMax = 64

export class Connections {
  readonly #max: number
  readonly #onEnd: (why: ConnectionEnd) => void
  readonly #networks = new Map<string, Network>()
  /** By how many connections they have. */
  readonly #bySize: Set<Network>[] = []
  #fullestSize = 0
  #count = 0

  /** @param onEnd called for each connection that is ended for a bound. */
  constructor(max: number, onEnd: (why: ConnectionEnd) => void = () => undefined) {
    this.#max = max
    this.#onEnd = onEnd
  }

  get count(): number {
    return this.#count
  }

  /** Before it listens. Its listener of requests has to be one that `noting` made. */
  watch(server: Server): void {
    server.on('connection', (socket: Socket) => this.#admit(socket))
  }

  /** @returns `answer`, which notes each request first. A second listener would make Node copy the list of them each time. */
  noting(answer: RequestListener): RequestListener {
    return (request, response) => {
      const connection = (request.socket as BoundSocket)[connectionOf]
      if (connection !== undefined) this.#note(connection, request, response)
      answer(request, response)
    }
  }

  #note(connection: Connection, request: IncomingMessage, response: ServerResponse): void {
    if (connection.response !== null && !isOver(connection.response)) this.#notePipelined(connection)
    connection.request = request
    connection.response = response
    connection.isAnswered = false
  }

  /** Lets go of a request that is over. It need not be called: what is held is looked at where it matters. */
  release({ socket, complete }: IncomingMessage, response: ServerResponse): void {
    const connection = (socket as BoundSocket)[connectionOf]
    if (connection === undefined || connection.response !== response || !complete) return
    connection.request = connection.response = null
    connection.isAnswered = true
  }

  /** Notes that a request came before the answer to the last one, and ends the connection where that is one too many. */
  #notePipelined({ socket, response, earlier }: Connection): void {
    while (earlier.length > 0 && isOver(earlier[0]!)) earlier.shift()
    earlier.push(response!)
    if (earlier.length < unansweredMax || socket.destroyed) return
    this.#onEnd('pipelined')
    socket.destroy()
    stopParsing(socket)
  }

  #admit(socket: Socket): void {
    const key = networkOf(withoutMapping(socket.remoteAddress ?? ''))
    if (this.#count >= this.#max && !this.#makeRoom(this.#networks.get(key))) {
      this.#onEnd('refused')
      socket.destroy()
      return
    }
    let network = this.#networks.get(key)
    if (network === undefined) {
      network = { key, connections: new Set() }
      this.#networks.set(key, network)
    }
    const connection: Connection = { socket, network, request: null, response: null, isAnswered: false, earlier: [] }
    const bound: BoundSocket = socket
    bound[connectionOf] = connection
    this.#resize(network, () => network.connections.add(connection))
    this.#count++
    socket.once('close', () => this.#remove(connection))
  }

  #remove(connection: Connection): void {
    const { network } = connection
    if (!network.connections.has(connection)) return
    this.#resize(network, () => network.connections.delete(connection))
    this.#count--
  }

  /** Keeps what is known of sizes true while the size of a network changes by one. */
  #resize(network: Network, change: () => void): void {
    const { connections, key } = network
    this.#bySize[connections.size]?.delete(network)
    change()
    const { size } = connections
    if (size === 0) this.#networks.delete(key)
    else {
      this.#bySize[size] ??= new Set()
      this.#bySize[size].add(network)
    }
    if (size > this.#fullestSize) this.#fullestSize = size
    while (this.#fullestSize > 0 && this.#bySize[this.#fullestSize]!.size === 0) this.#fullestSize--
  }

  /** @param newcomers the network of the new connection; undefined when it has no other one. */
  #makeRoom(newcomers: Network | undefined): boolean {
    const size = newcomers?.connections.size ?? 0
    const fullest = this.#bySize[this.#fullestSize]!
    // An address that has the most itself may only exchange an idle connection of its own.
    const isFullest = newcomers !== undefined && size === this.#fullestSize
    const found = this.#look(isFullest ? [newcomers] : fullest)
    if (found === null || (isFullest && found.state !== 'idle')) return false
    // An answer is only broken off for an address that has clearly fewer connections.
    if (found.state === 'answering' && this.#fullestSize < size + 2) return false
    this.#onEnd(found.state === 'idle' ? 'idle' : 'crowded')
    this.#remove(found.connection)
    found.connection.socket.destroy()
    return true
  }

  /** Finds the connection that is missed least among the next few. */
  #look(networks: Iterable<Network>): { connection: Connection; state: ConnectionState } | null {
    let found: { connection: Connection; state: ConnectionState } | null = null
    const looked: Connection[] = []
    for (const network of networks) {
      for (const connection of network.connections) {
        const state = stateOf(connection)
        looked.push(connection)
        if (found === null || missedMore[found.state] > missedMore[state]) found = { connection, state }
        if (state === 'idle' || looked.length === looksMax) break
      }
      if (found?.state === 'idle' || looked.length === looksMax) break
    }
    // The others are looked at first the next time.
    for (const connection of looked) {
      const { network } = connection
      network.connections.delete(connection)
      network.connections.add(connection)
      const alike = this.#bySize[network.connections.size]!
      alike.delete(network)
      alike.add(network)
    }
    return found
  }
}

type ConnectionState = 'idle' | 'reading' | 'answering'

const missedMore: Record<ConnectionState, number> = { idle: 0, reading: 1, answering: 2 }

function stateOf({ request, response, isAnswered }: Connection): ConnectionState {
  if (isAnswered) return 'idle'
  if (request === null || response === null || !request.complete) return 'reading'
  return response.writableFinished ? 'idle' : 'answering'
}

const isOver = (response: ServerResponse): boolean => response.writableFinished || response.destroyed

/** What Node's own `_http_server.js` sets; not documented. */
interface ParsedSocket {
  readonly parser?: { onIncoming: (() => number) | null } | null
}

/**
 * Leaves the rest of what was read from a destroyed connection unparsed. Node goes on to its end otherwise, which takes a tenth
 * of a second; without the parser's hook that is all that happens.
 */
function stopParsing(socket: Socket): void {
  const { parser } = socket as ParsedSocket
  // A negative number makes the parser fail where it is.
  if (parser?.onIncoming) parser.onIncoming = () => -1
}
