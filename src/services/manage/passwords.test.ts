import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { createPasswords, PasswordsBusyError, waitingMax } from './passwords.ts'

describe('passwords', () => {
  it('are hashed with argon2id and a salt of their own, in PHC text form', async () => {
    const passwords = createPasswords(randomBytes)
    const hash = await passwords.hash('correct horse battery')
    assert.match(hash, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
    assert.notEqual(await passwords.hash('correct horse battery'), hash)
    assert.equal(await passwords.matches('correct horse battery', hash), true)
    assert.equal(await passwords.matches('correct horse batterY', hash), false)
    assert.equal(passwords.isOutdated(hash), false)
  })

  it('match hashes of other programs and older parameters, which are outdated', async () => {
    const passwords = createPasswords(randomBytes)
    // Source: the tests of the reference implementation, P-H-C/phc-winner-argon2, src/test.c.
    const stored = '$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4'
    assert.equal(await passwords.matches('password', stored), true)
    assert.equal(await passwords.matches('passwort', stored), false)
    assert.equal(passwords.isOutdated(stored), true)
  })

  it('match whichever way a keyboard types an accent', async () => {
    const passwords = createPasswords(randomBytes)
    const hash = await passwords.hash('pässword for Ångström')
    assert.equal(await passwords.matches('pässword for Ångström'.normalize('NFD'), hash), true)
  })

  it('never match an unknown user', async () => {
    const passwords = createPasswords(() => new Uint8Array(32))
    assert.equal(await passwords.matches('0'.repeat(64), null), false)
  })

  it('are refused while too many are being hashed, and accepted afterwards', async () => {
    const passwords = createPasswords(randomBytes)
    const results = await Promise.allSettled(Array.from({ length: 2 + waitingMax + 3 }, () => passwords.hash('x')))
    const refused = results.filter(({ status }) => status === 'rejected')
    assert.equal(refused.length, 3)
    for (const one of refused) assert.ok((one as PromiseRejectedResult).reason instanceof PasswordsBusyError)
    assert.equal(passwords.isBusy(), false)
    await passwords.hash('x')
  })
})
