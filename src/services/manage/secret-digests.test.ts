import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createSecretDigestCache, hashSecret } from './secret-digests.ts'

describe('digests of secrets', () => {
  it('match the SHA-256 of the secret, cached or not, and never that of another secret', () => {
    const digests = createSecretDigestCache(100)
    const secrets = Array.from({ length: 1_000 }, (_, index) => `phx_${index}${'x'.repeat(index % 7)}`)
    for (const secret of secrets) {
      assert.equal(digests.of(secret), hashSecret(secret))
      digests.keep(secret, hashSecret(secret))
      assert.equal(digests.of(secret), hashSecret(secret))
      for (const other of [secret.slice(0, -1), `${secret}x`, secret.replace('phx', 'phy'), ''])
        assert.equal(digests.of(other), hashSecret(other))
    }
    for (const secret of secrets) assert.equal(digests.of(secret), hashSecret(secret))
  })

  it('are not computed again while they are cached, up to a limit', () => {
    const digests = createSecretDigestCache(2)
    const marked = (secret: string) => {
      digests.keep(secret, `kept ${secret}`)
      return digests.of(secret)
    }
    assert.deepEqual([marked('a'), marked('b')], ['kept a', 'kept b'])
    assert.equal(digests.of('a'), 'kept a')
    assert.equal(marked('c'), 'kept c')
    assert.equal(digests.of('a'), hashSecret('a'))
  })
})
