// Provides the encryption keys in `PENNON_ENCRYPTION_KEY`, and the key in the data folder's key file, which is created when
// it is first needed, if that is allowed. Source: ours, docs/operating/settings.md and the decision it names.

import { hash, type randomBytes } from 'node:crypto'
import { link, open, readFile, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { err, ok } from '#core/result.ts'
import type { EncryptionKey, EncryptionKeys } from '#ports/encryption-keys.ts'

export interface EncryptionKeysOptions {
  /** The keys from the setting, 64 hexadecimal digits each; the first key encrypts, and all keys decrypt. */
  readonly given: readonly string[]
  /** The absolute path of the key file, which is read if it exists. */
  readonly keyFile: string
  /** Why the key file must not be created, as one line for operators; null when it may be created. */
  readonly missingKeyReason: string | null
  readonly randomBytes: typeof randomBytes
}

const keyBytes = 32
const hexForm = /^[0-9a-f]{64}$/

export function openEncryptionKeys(options: EncryptionKeysOptions): EncryptionKeys {
  const given = options.given.map(parseKey)
  let fromFile: EncryptionKey | null = null

  return {
    async getCurrentKey() {
      const first = given[0] ?? (await readKeyFile())
      if (first !== null) return ok(first)
      if (options.missingKeyReason !== null) return err(options.missingKeyReason)
      await makeKeyFile(options)
      return ok((await readKeyFile())!)
    },
    async findKey(id) {
      const known = given.find(key => key.id === id)
      if (known !== undefined) return known
      const key = await readKeyFile()
      return key?.id === id ? key : null
    },
  }

  /**
   * Reads the key file once and keeps the key, since a key file is never rewritten. @throws Error when the file exists and
   * cannot be used.
   */
  async function readKeyFile(): Promise<EncryptionKey | null> {
    if (fromFile !== null) return fromFile
    const text = await readFileIfExists(options.keyFile)
    if (text === null) return null
    if (!hexForm.test(text.trim())) throw new Error(`${options.keyFile} does not contain an encryption key`)
    fromFile = parseKey(text.trim())
    return fromFile
  }
}

function parseKey(hex: string): EncryptionKey {
  const bytes = Buffer.from(hex, 'hex')
  return {
    id: hash('sha256', Buffer.concat([Buffer.from('pennon encryption key '), bytes]), 'hex').slice(0, 16),
    bytes,
  }
}

async function readFileIfExists(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8')
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw cause
  }
}

/** The file is complete and synced before it gets its name, which only the first of several processes can give it. */
async function makeKeyFile({ keyFile, randomBytes }: EncryptionKeysOptions): Promise<void> {
  const draft = join(dirname(keyFile), `.encryption-key-${randomBytes(8).toString('hex')}`)
  const file = await open(draft, 'wx', 0o600)
  try {
    await file.writeFile(`${randomBytes(keyBytes).toString('hex')}\n`)
    await file.sync()
    await link(draft, keyFile)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause
  } finally {
    await file.close()
    await rm(draft, { force: true })
  }
  const folder = await open(dirname(keyFile), 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
