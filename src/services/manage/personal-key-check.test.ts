import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { PersonalKey } from '#core/personal-key.ts'
import { PortError } from '#ports/port-error.ts'
import { fixedClock } from '../../../tests/support/fixed-clock.ts'
import { createPersonalKeyCheck } from './personal-key-check.ts'
import { unknownSecretsAskedMax } from './secret-check.ts'
import { hashSecret } from './secret-digests.ts'

const storedKey = { id: 'k', lastUsedAtMs: null } as unknown as PersonalKey

/** A check on a store that has the keys of `stored`, by their secrets, and counts its look-ups. */
function startCheck({ answersLater = false } = {}) {
  const stored = new Set<string>()
  const waiting: (() => void)[] = []
  let askedCount = 0
  const clock = fixedClock(1_000_000)
  const check = createPersonalKeyCheck({
    management: {
      findPersonalKeyByHash: async hash => {
        askedCount++
        if (answersLater) await new Promise<void>(resolve => waiting.push(resolve))
        return [...stored].some(secret => hashSecret(secret) === hash) ? storedKey : null
      },
    },
    clock,
    uses: { note: () => undefined },
  })
  const answerAll = () => {
    for (const answer of waiting.splice(0)) answer()
  }
  return { check, clock, stored, answerAll, askedCount: () => askedCount }
}

describe('a personal key that does not exist', () => {
  it('is looked up once a second, however often it is sent', async () => {
    const { check, clock, askedCount } = startCheck()
    for (let sent = 0; sent < 100; sent++) assert.equal(await check.find('phx_madeup'), null)
    assert.equal(askedCount(), 1)
    clock.advance(1_001)
    assert.equal(await check.find('phx_madeup'), null)
    assert.equal(askedCount(), 2)
  })

  it('works as soon as it has been created and the process has noticed a change', async () => {
    const { check, stored } = startCheck()
    assert.equal(await check.find('phx_given'), null)
    stored.add('phx_given')
    check.forget()
    assert.equal(await check.find('phx_given'), storedKey)
  })

  it('is not remembered as missing if the process notices a change during the look-up', async () => {
    const { check, stored, answerAll } = startCheck({ answersLater: true })
    const first = check.find('phx_given')
    check.forget()
    answerAll()
    assert.equal(await first, null)
    stored.add('phx_given')
    const second = check.find('phx_given')
    answerAll()
    assert.equal(await second, storedKey)
  })

  it('does not block look-ups of keys that were found before, however many made-up keys are sent', async () => {
    const { check, clock, stored, answerAll, askedCount } = startCheck({ answersLater: true })
    stored.add('phx_real')
    const first = check.find('phx_real')
    answerAll()
    await first

    const unknownKeys = Array.from({ length: 5_000 }, async (_, n) => check.find(`phx_madeup${n}`)).map(asked =>
      asked.then(
        () => 'unknown',
        error => (error instanceof PortError ? error.code : 'other'),
      ),
    )
    assert.equal(askedCount(), 1 + unknownSecretsAskedMax)
    clock.advance(10_001)
    check.forget()
    const again = check.find('phx_real')
    assert.equal(askedCount(), 2 + unknownSecretsAskedMax, 'the remembered key has expired and is looked up')
    answerAll()
    assert.equal(await again, storedKey)
    const answers = await Promise.all(unknownKeys)
    assert.equal(answers.filter(answer => answer === 'unknown').length, unknownSecretsAskedMax)
    assert.equal(answers.filter(answer => answer === 'unavailable').length, 5_000 - unknownSecretsAskedMax)

    const next = check.find('phx_new')
    answerAll()
    assert.equal(await next, null, 'there is capacity again')
  })
})
