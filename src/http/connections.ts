// Keeps the connections of a process below its limit of open files, beyond which nothing can be opened, not even by the
// thread that writes the log. At the limit, a connection of the address with the most connections is closed, so an address
// suffers only from its own connections. The requests of a connection are started one at a time, each after the system has
// taken all of the previous answer. A connection with too many waiting requests is closed.

import type { IncomingMessage, RequestListener, Server, ServerOptions, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { findSenderNetwork, removeIpv4Mapping } from '#wire/address/client-address.ts'
import type { AnswerBudget } from './answers/answer-budget.ts'

/** Open files reserved for the stores, the decode threads and queries; an idle front has some 60 files open. */
const filesReserved = 256
/** Each connection may hold 16 KiB of unfinished headers, so all of them together hold at most 256 MiB. */
const connectionsMax = 16_384

/**
 * How many connections a process may keep.
 * @param openFilesMax the process's limit of open files; null when it has no limit.
 */
export function computeConnectionsMax(openFilesMax: number | null): number {
  if (openFilesMax === null) return connectionsMax
  return Math.min(connectionsMax, Math.max(openFilesMax - filesReserved, Math.floor(openFilesMax / 2)))
}

/**
 * Why a connection was closed. `idle`: it was between requests. `crowded`: its address has the most connections. `refused`:
 * it was new, and its address already has the most connections. `pipelined`: it had too many unanswered requests.
 */
export type ConnectionEndReason = 'idle' | 'crowded' | 'refused' | 'pipelined'

/**
 * How many requests of one connection may wait for the answer to the first. One read of 64 KiB may contain two thousand
 * requests, and Node passes on all of them before anything else runs. No SDK sends a second request before the first is
 * answered.
 */
export const unansweredMax = 16
/**
 * How many waiting requests are started in one turn of the event loop, so that many pipelining connections do not delay all
 * other requests.
 */
const begunPerTurn = 8

interface Connection {
  readonly socket: Socket
  readonly network: Network
  /**
   * The latest request that was started, and its response. Null before the first request, and again after `release`:
   * otherwise each young-generation garbage collection would copy the objects of every idle connection.
   */
  request: IncomingMessage | null
  response: ServerResponse | null
  isAnswered: boolean
  /** The responses of requests that have not been started. */
  readonly waiting: ServerResponse[]
}

const connectionOf = Symbol('connection')

interface BoundSocket extends Socket {
  [connectionOf]?: Connection
}

/** The connections of one address; the first is the next candidate to be closed. */
interface Network {
  readonly key: string
  readonly connections: Set<Connection>
}

/**
 * How many connections of the fullest networks are examined for one new connection. The search for the next new connection
 * continues after them.
 */
const looksMax = 64

export class Connections {
  readonly #answers: AnswerBudget | null
  readonly #max: number
  readonly #onEnd: (reason: ConnectionEndReason) => void
  /** Functions that each start the next request of a connection, once the system has taken its previous answer. */
  readonly #due: (() => void)[] = []
  readonly #networks = new Map<string, Network>()
  /** At index n, the networks that have n connections. */
  readonly #bySize: Set<Network>[] = []
  #fullestSize = 0
  #count = 0

  /**
   * @param onEnd called for each connection that is closed because of a limit. @param answers limits the unread answers; no
   * limit when absent.
   */
  constructor(
    max: number,
    onEnd: (reason: ConnectionEndReason) => void = () => undefined,
    answers: AnswerBudget | null = null,
  ) {
    this.#max = max
    this.#onEnd = onEnd
    this.#answers = answers
  }

  get count(): number {
    return this.#count
  }

  /** Options with which to create the server to `watch`. */
  get serverOptions(): ServerOptions {
    return this.#answers === null ? {} : { ServerResponse: this.#answers.responses }
  }

  /** Call it before the server listens. The server's request listener must be one that `noting` returned. */
  watch(server: Server): void {
    server.on('connection', (socket: Socket) => this.#admit(socket))
  }

  /**
   * Wraps `answer` so that each request is started when the previous answers are taken. A wrapper, because a second
   * listener would make Node copy the list of listeners for each request.
   */
  noting(answer: RequestListener): RequestListener {
    return (request, response) => {
      const connection = (request.socket as BoundSocket)[connectionOf]
      if (connection === undefined) return void answer(request, response)
      const isNext = connection.waiting.length === 0 && !isUnfinished(connection.response)
      if (isNext && this.#answers?.isFull !== true) this.#begin(connection, request, response, answer)
      else this.#wait(connection, response, answer)
    }
  }

  #begin(connection: Connection, request: IncomingMessage, response: ServerResponse, answer: RequestListener): void {
    connection.request = request
    connection.response = response
    connection.isAnswered = false
    answer(request, response)
  }

  /** Queues a request; closes the connection when too many are unanswered. */
  #wait(connection: Connection, response: ServerResponse, answer: RequestListener): void {
    const { socket, waiting } = connection
    if (socket.destroyed) return
    const unansweredCount = waiting.push(response) + (isUnfinished(connection.response) ? 1 : 0)
    if (unansweredCount > unansweredMax) {
      this.#onEnd('pipelined')
      socket.destroy()
      stopParsing(socket)
    } else if (waiting.length === 1) this.#awaitPrevious(connection, answer)
    else this.#chargeWaiting(connection)
  }

  /** Starts the next request of the connection after the previous answer, once the answer budget allows it. */
  #awaitPrevious(connection: Connection, answer: RequestListener): void {
    const { socket, response, waiting } = connection
    const begin = () => {
      // The previous answer may have been the last one of the connection.
      if (!socket.writable) return
      const next = waiting.shift()!
      this.#begin(connection, next.req, next, answer)
      if (waiting.length > 0) this.#awaitPrevious(connection, answer)
    }
    this.#chargeWaiting(connection)
    if (isUnfinished(response)) response.once('close', () => this.#scheduleBegin(begin))
    else if (this.#answers?.isFull === true) this.#answers.whenFree(begin)
    else this.#scheduleBegin(begin)
  }

  #scheduleBegin(begin: () => void): void {
    if (this.#due.push(begin) === 1) setImmediate(() => this.#beginDue())
  }

  #beginDue(): void {
    if (this.#answers?.isFull !== true) {
      const begun = this.#due.slice(0, begunPerTurn)
      for (const begin of begun) begin()
      this.#due.splice(0, begun.length)
    }
    if (this.#due.length > 0) setImmediate(() => this.#beginDue())
  }

  #chargeWaiting({ response, waiting }: Connection): void {
    if (isUnfinished(response)) this.#answers?.note(response, waiting)
  }

  /** Releases a finished request early. Optional, since other methods check a connection's state themselves. */
  release({ socket, complete }: IncomingMessage, response: ServerResponse): void {
    const connection = (socket as BoundSocket)[connectionOf]
    if (connection === undefined || connection.response !== response || !complete) return
    connection.request = connection.response = null
    connection.isAnswered = true
  }

  /** Whether an answer was partly sent. If so, the client would mistake another answer for the rest of it. */
  isWithinAnswer(socket: Socket): boolean {
    const response = (socket as BoundSocket)[connectionOf]?.response ?? null
    return isUnfinished(response) && response.headersSent && !response.writableEnded
  }

  #admit(socket: Socket): void {
    const key = findSenderNetwork(removeIpv4Mapping(socket.remoteAddress ?? ''))
    if (this.#count >= this.#max && !this.#endLeastNeeded(this.#networks.get(key))) {
      this.#onEnd('refused')
      socket.destroy()
      return
    }
    let network = this.#networks.get(key)
    if (network === undefined) {
      network = { key, connections: new Set() }
      this.#networks.set(key, network)
    }
    const connection: Connection = { socket, network, request: null, response: null, isAnswered: false, waiting: [] }
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

  /** Changes a network's size by one, by calling `change`, and then updates `#bySize` and `#fullestSize`. */
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

  /**
   * Closes one connection. @param newcomers the network of the new connection; undefined when that network has no other
   * connection.
   */
  #endLeastNeeded(newcomers: Network | undefined): boolean {
    const size = newcomers?.connections.size ?? 0
    const fullest = this.#bySize[this.#fullestSize]!
    // When the newcomer's address has the most connections, only an idle connection of that address may be closed.
    const isFullest = newcomers !== undefined && size === this.#fullestSize
    const found = this.#look(isFullest ? [newcomers] : fullest)
    if (found === null || (isFullest && found.state !== 'idle')) return false
    // A connection with an unfinished answer is closed only for an address that has clearly fewer connections.
    if (found.state === 'answering' && this.#fullestSize < size + 2) return false
    this.#onEnd(found.state === 'idle' ? 'idle' : 'crowded')
    this.#remove(found.connection)
    const { socket } = found.connection
    // Without a reset the system would keep megabytes of the answer for minutes.
    if (found.state === 'answering') socket.resetAndDestroy()
    else socket.destroy()
    return true
  }

  /** Finds the least harmful connection to close among the next few. */
  #look(networks: Iterable<Network>): { connection: Connection; state: ConnectionState } | null {
    let found: { connection: Connection; state: ConnectionState } | null = null
    const looked: Connection[] = []
    for (const network of networks) {
      for (const connection of network.connections) {
        const state = findConnectionState(connection)
        looked.push(connection)
        if (found === null || missedMore[found.state] > missedMore[state]) found = { connection, state }
        if (state === 'idle' || looked.length === looksMax) break
      }
      if (found?.state === 'idle' || looked.length === looksMax) break
    }
    // Moves the examined connections to the back, so that the next search starts with connections that were not examined.
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

function findConnectionState({ request, response, isAnswered }: Connection): ConnectionState {
  if (isAnswered) return 'idle'
  if (request === null || response === null || !request.complete) return 'reading'
  return response.writableFinished ? 'idle' : 'answering'
}

function isUnfinished(response: ServerResponse | null): response is ServerResponse {
  return response !== null && !response.writableFinished && !response.destroyed
}

/** An undocumented property that Node's own `_http_server.js` sets. */
interface ParsedSocket {
  readonly parser?: { onIncoming: (() => number) | null } | null
}

/**
 * Prevents Node from parsing the rest of the bytes that it read from a destroyed connection, which could take a tenth of a
 * second. Has no effect in a version of Node that lacks the parser's hook.
 */
function stopParsing(socket: Socket): void {
  const { parser } = socket as ParsedSocket
  // A negative result makes the parser fail at once.
  if (parser?.onIncoming) parser.onIncoming = () => -1
}
