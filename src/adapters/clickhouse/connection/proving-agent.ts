// Proves each connection to the embedded engine before anything is sent over it. When the engine has died, any process
// of the host may take its port. The listener must first show that it knows the secret of this start, which only the
// engine's own configuration and the endpoint file have. The proof and the requests share one connection, so only the
// proved process gets the password and the rows. The engine's half is in its configuration (engine-config.ts).

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { Agent, type ClientRequestArgs } from 'node:http'
import { connect, type Socket, type TcpNetConnectOpts } from 'node:net'
import type { Duplex } from 'node:stream'

/** How long to wait for the proof: a suspended engine accepts connections but does not answer. */
const proofMsMax = 5_000
/** The most bytes of the engine's answer to the request for a proof; its headers take 800 bytes. */
const answerBytesMax = 8 * 1024

/**
 * Thrown when another process, or the engine of another start, has the engine's port. Only a random number was sent to it.
 */
export class UnprovedServerError extends Error {
  constructor(place: string, reason: string) {
    super(`the server at ${place} did not prove that it is the event store started by Pennon: ${reason}`)
    this.name = 'UnprovedServerError'
  }
}

export class ProvingAgent extends Agent {
  readonly #secret: string
  readonly #waitMsMax: number

  /** @param secret of the engine's start, from its endpoint file. */
  constructor(secret: string, connectionsMax: number, waitMsMax: number = proofMsMax) {
    super({ keepAlive: true, maxSockets: connectionsMax })
    this.#secret = secret
    this.#waitMsMax = waitMsMax
  }

  override createConnection(
    options: ClientRequestArgs,
    callback?: (error: Error | null, stream: Duplex) => void,
  ): undefined {
    const socket = connect(options as TcpNetConnectOpts)
    proveServer(socket, this.#secret, `${options.host}:${options.port}`, this.#waitMsMax).then(
      () => callback?.(null, socket),
      (error: Error) => {
        socket.destroy()
        callback?.(error, socket)
      },
    )
    return undefined
  }
}

/**
 * Asks the server for the hash of a fresh random number and the secret, and checks it. Rejects with the cause of a failure.
 */
function proveServer(socket: Socket, secret: string, place: string, waitMsMax: number): Promise<void> {
  const nonce = randomBytes(16).toString('hex')
  const expected = createHash('sha256').update(nonce).update(secret).digest('hex')
  return new Promise((resolve, reject) => {
    let answer = ''
    const timer = setTimeout(() => end(new UnprovedServerError(place, 'it did not answer')), waitMsMax)
    const end = (failure: Error | null) => {
      clearTimeout(timer)
      socket.off('data', onData).off('error', onError).off('close', onClose)
      if (failure === null) resolve()
      else reject(failure)
    }
    const onError = (cause: Error) => end(cause)
    const onClose = () => end(new UnprovedServerError(place, 'it closed the connection'))
    const onData = (data: Buffer) => {
      answer += data.toString('latin1')
      if (answer.endsWith(endOfAnswer))
        end(isProof(answer, expected) ? null : new UnprovedServerError(place, 'its answer is wrong'))
      else if (answer.length > answerBytesMax) end(new UnprovedServerError(place, 'its answer is not a proof'))
    }
    socket.on('data', onData).on('error', onError).on('close', onClose)
    socket.write(`GET /proof/${nonce} HTTP/1.1\r\nHost: ${place}\r\nConnection: keep-alive\r\n\r\n`)
  })
}

/** The engine sends its answer in chunks; an empty chunk ends it. */
const endOfAnswer = '\r\n0\r\n\r\n'
const hashLength = 64

/** Whether the answer is one chunk that consists of the expected hash on one line. */
function isProof(answer: string, expected: string): boolean {
  const body = /\r\n\r\n41\r\n([0-9A-F]{64})\n\r\n0\r\n\r\n$/.exec(answer)
  const given = body?.[1]?.toLowerCase() ?? '0'.repeat(hashLength)
  return timingSafeEqual(Buffer.from(given), Buffer.from(expected))
}
