import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { openSaltFiles } from '#adapters/salt-files/salt-files.ts'
import { PortError } from '#ports/port-error.ts'
import { tempDir } from '../support/temp-dir.ts'
import { cookielessSaltsContract } from './cookieless-salts.contract.ts'

cookielessSaltsContract('files', async t => {
  const dataFolder = tempDir(t)
  return [openSaltFiles(dataFolder), openSaltFiles(dataFolder)]
})

describe('the files of salts', () => {
  const salt = new Uint8Array(16).fill(7)

  it('are readable by their owner alone, and leave no draft', async t => {
    const dataFolder = tempDir(t)
    const store = openSaltFiles(dataFolder)
    assert.ok(!existsSync(join(dataFolder, 'salts')), 'an instance that needs none has none')
    await store.keepSalt('2026-11-28', salt)
    assert.deepEqual(readdirSync(join(dataFolder, 'salts')), ['2026-11-28'])
    assert.equal(statSync(join(dataFolder, 'salts', '2026-11-28')).mode & 0o077, 0)
  })

  it('fail as the state when one is damaged, and take what a killed process left away', async t => {
    const dataFolder = tempDir(t)
    mkdirSync(join(dataFolder, 'salts'))
    writeFileSync(join(dataFolder, 'salts', '2026-11-28'), 'short')
    writeFileSync(join(dataFolder, 'salts', '.2026-11-27-0011223344556677'), salt)
    const draftOfOpenDay = '.2026-11-29-0011223344556677'
    writeFileSync(join(dataFolder, 'salts', draftOfOpenDay), salt)
    const store = openSaltFiles(dataFolder)
    await assert.rejects(
      store.keepSalt('2026-11-28', salt),
      (cause: unknown) => cause instanceof PortError && cause.code === 'unavailable',
    )
    await store.deleteSaltsBefore('2026-11-29')
    assert.deepEqual(readdirSync(join(dataFolder, 'salts')), [draftOfOpenDay])
    assert.deepEqual(readFileSync(join(dataFolder, 'salts', draftOfOpenDay)), Buffer.from(salt))
  })
})
