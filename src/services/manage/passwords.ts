// Hashes passwords with argon2id, in PHC text form. A hash takes 30 to 40 ms of a pool thread and 19 MiB, so few run at a
// time and few wait, and senders take turns.

import { argon2, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { FairQueue, type QueuedJob } from '#core/fair-queue.ts'
import { normalizePassword } from '#core/users/user.ts'
import type { RandomBytes } from './generate-key.ts'

/** Source: OWASP, Password Storage Cheat Sheet: argon2id with 19 MiB, 2 passes and 1 lane. */
const parameters = { memoryKib: 19_456, passes: 2, lanes: 1 } as const
const saltBytes = 16
const hashBytes = 32
const runningMax = 2
export const waitingMax = 20

/** Too many passwords are being hashed. The caller answers 429. */
export class PasswordsBusyError extends Error {}

interface StoredHash {
  readonly memoryKib: number
  readonly passes: number
  readonly lanes: number
  readonly salt: Buffer
  readonly hash: Buffer
}

export type Passwords = ReturnType<typeof createPasswords>

/** What may be done during a turn. */
export interface Hashing {
  readonly hash: (password: string) => Promise<string>
  /** Whether the password is the one of this hash. Takes as long without a hash, and is false then. */
  readonly matches: (password: string, stored: string | null) => Promise<boolean>
}

interface WaitingTurn extends QueuedJob {
  readonly begin: () => void
  readonly refuse: () => void
}

export function createPasswords(randomBytes: RandomBytes) {
  let running = 0
  const waiting = new FairQueue<WaitingTurn>({ jobCountMax: waitingMax, bytesMax: Number.POSITIVE_INFINITY })
  /** Checked in place of the hash of an unknown user, at the same cost. */
  let decoy: Promise<string> | undefined

  const hashing: Hashing = {
    async hash(password) {
      const salt = Buffer.from(randomBytes(saltBytes))
      const { memoryKib, passes, lanes } = parameters
      const hash = await compute(password, { ...parameters, salt, hash: Buffer.alloc(hashBytes) })
      return `$argon2id$v=19$m=${memoryKib},t=${passes},p=${lanes}$${toBase64(salt)}$${toBase64(hash)}`
    },
    async matches(password, stored) {
      decoy ??= hashing.hash(Buffer.from(randomBytes(32)).toString('hex'))
      const known = parseHash(stored ?? (await decoy))
      const computed = await compute(password, known)
      return stored !== null && timingSafeEqual(computed, known.hash)
    },
  }

  return {
    /**
     * Runs work that hashes passwords when it is the sender's turn.
     * @throws PasswordsBusyError before the work starts.
     */
    async inTurn<T>(from: Pick<QueuedJob, 'sender' | 'group'>, work: (hashing: Hashing) => Promise<T>): Promise<T> {
      if (running < runningMax) running++
      else
        await new Promise<void>((begin, reject) => {
          const refuse = () => reject(new PasswordsBusyError('too many passwords are being hashed'))
          for (const refused of waiting.push({ ...from, bytes: 0, begin, refuse })) refused.refuse()
        })
      try {
        return await work(hashing)
      } finally {
        const next = waiting.shift()
        if (next === undefined) running--
        else next.begin()
      }
    },
    /** Whether the hash was made with other parameters than new hashes are. */
    isOutdated(stored: string): boolean {
      const { memoryKib, passes, lanes } = parseHash(stored)
      return memoryKib !== parameters.memoryKib || passes !== parameters.passes || lanes !== parameters.lanes
    },
  }
}

const argon2Async = promisify(argon2)

async function compute(password: string, { memoryKib, passes, lanes, salt, hash }: StoredHash): Promise<Buffer> {
  return argon2Async('argon2id', {
    message: normalizePassword(password),
    nonce: salt,
    memory: memoryKib,
    passes,
    parallelism: lanes,
    tagLength: hash.length,
  }) as Promise<Buffer>
}

function parseHash(text: string): StoredHash {
  const match = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/.exec(text)
  if (match === null) throw new Error('the stored hash of a password is not argon2id in PHC text form')
  const [, memory, passes, lanes, salt, hash] = match
  return {
    ...{ memoryKib: Number(memory), passes: Number(passes), lanes: Number(lanes) },
    ...{ salt: Buffer.from(salt!, 'base64'), hash: Buffer.from(hash!, 'base64') },
  }
}

function toBase64(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '')
}
