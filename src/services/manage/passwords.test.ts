import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { createPasswords, PasswordsBusyError, waitingMax } from './passwords.ts'

/** As one sender, each in a turn of its own. */
function createTestPasswords(bytes: Parameters<typeof createPasswords>[0] = randomBytes) {
  const { inTurn, isOutdated } = createPasswords(bytes)
  const from = { sender: 'a' }
  return {
    ...{ inTurn, isOutdated },
    hash: (password: string) => inTurn(from, ({ hash }) => hash(password)),
    matches: (password: string, stored: string | null) => inTurn(from, ({ matches }) => matches(password, stored)),
  }
}

describe('passwords', () => {
  it('are hashed with argon2id and a salt of their own, in PHC text form', async () => {
    const passwords = createTestPasswords()
    const hash = await passwords.hash('correct horse battery')
    assert.match(hash, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
    assert.notEqual(await passwords.hash('correct horse battery'), hash)
    assert.equal(await passwords.matches('correct horse battery', hash), true)
    assert.equal(await passwords.matches('correct horse batterY', hash), false)
    assert.equal(passwords.isOutdated(hash), false)
  })

  it('match hashes of other programs and older parameters, which are outdated', async () => {
    const passwords = createTestPasswords()
    // Source: the tests of the reference implementation, P-H-C/phc-winner-argon2, src/test.c.
    const stored = '$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4'
    assert.equal(await passwords.matches('password', stored), true)
    assert.equal(await passwords.matches('passwort', stored), false)
    assert.equal(passwords.isOutdated(stored), true)
  })

  it('match whichever way a keyboard types an accent', async () => {
    const passwords = createTestPasswords()
    const hash = await passwords.hash('pässword for Ångström')
    assert.equal(await passwords.matches('pässword for Ångström'.normalize('NFD'), hash), true)
  })

  it('never match an unknown user', async () => {
    const passwords = createTestPasswords(() => new Uint8Array(32))
    assert.equal(await passwords.matches('0'.repeat(64), null), false)
  })

  it('are refused while too many are being hashed, and accepted afterwards', async () => {
    const passwords = createTestPasswords()
    const results = await Promise.allSettled(Array.from({ length: 2 + waitingMax + 3 }, () => passwords.hash('x')))
    const refused = results.filter(({ status }) => status === 'rejected')
    assert.equal(refused.length, 3)
    for (const one of refused) assert.ok((one as PromiseRejectedResult).reason instanceof PasswordsBusyError)
    await passwords.hash('x')
  })

  it('of a sender who sends many do not keep another sender waiting', async () => {
    const { inTurn } = createPasswords(randomBytes)
    const done: string[] = []
    const send = (sender: string) => inTurn({ sender }, async () => done.push(sender)).catch(() => {})
    await Promise.all([...Array.from({ length: 2 + waitingMax + 3 }, () => send('many')), send('one')])
    assert.equal(done.length, 2 + waitingMax)
    assert.ok(done.indexOf('one') <= 4, String(done))
  })
})
