import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { openSaltFiles } from '#adapters/salt-files/salt-files.ts'
import { tempDir } from '../support/temp-dir.ts'
import { cookielessSaltsContract } from './cookieless-salts.contract.ts'

cookielessSaltsContract('files', async t => {
  const dataFolder = tempDir(t)
  return [openSaltFiles(dataFolder), openSaltFiles(dataFolder)]
})

describe('the salt files', () => {
  const salt = new Uint8Array(16).fill(7)

  it('are readable only by their owner, and leave no temporary file', async t => {
    const dataFolder = tempDir(t)
    const store = openSaltFiles(dataFolder)
    assert.ok(!existsSync(join(dataFolder, 'salts')), 'an instance that needs none has none')
    await store.findOrCreateSalt('2026-11-28', salt)
    assert.deepEqual(readdirSync(join(dataFolder, 'salts')), ['2026-11-28'])
    assert.equal(statSync(join(dataFolder, 'salts', '2026-11-28')).mode & 0o077, 0)
  })

  it('are replaced by a new salt when damaged', async t => {
    const dataFolder = tempDir(t)
    mkdirSync(join(dataFolder, 'salts'))
    writeFileSync(join(dataFolder, 'salts', '2026-11-28'), 'short')
    const store = openSaltFiles(dataFolder)
    assert.deepEqual(await store.findOrCreateSalt('2026-11-28', salt), salt)
    assert.deepEqual(readdirSync(join(dataFolder, 'salts')), ['2026-11-28'])
    assert.deepEqual(readFileSync(join(dataFolder, 'salts', '2026-11-28')), Buffer.from(salt))
  })

  it('cause `unavailable` if one cannot be read, and the rest are deleted even if one cannot be deleted', async t => {
    const dataFolder = tempDir(t)
    for (const day of ['2026-11-26', '2026-11-28']) mkdirSync(join(dataFolder, 'salts', day), { recursive: true })
    writeFileSync(join(dataFolder, 'salts', '2026-11-27'), salt)
    const store = openSaltFiles(dataFolder)
    await assert.rejects(store.findOrCreateSalt('2026-11-28', salt), { code: 'unavailable' })
    await assert.rejects(store.deleteSaltsExcept({ first: '2026-11-28', last: '2026-11-29' }), { code: 'unavailable' })
    assert.ok(!existsSync(join(dataFolder, 'salts', '2026-11-27')))
  })

  it('are deleted with temporary files that killed processes left for the same days, and other files remain', async t => {
    const dataFolder = tempDir(t)
    mkdirSync(join(dataFolder, 'salts'))
    writeFileSync(join(dataFolder, 'salts', 'notes'), 'of somebody else')
    writeFileSync(join(dataFolder, 'salts', '.2026-11-27-0011223344556677'), salt)
    const draftOfOpenDay = '.2026-11-29-0011223344556677'
    writeFileSync(join(dataFolder, 'salts', draftOfOpenDay), salt)
    const store = openSaltFiles(dataFolder)
    await store.deleteSaltsExcept({ first: '2026-11-29', last: '2026-11-30' })
    assert.deepEqual(readdirSync(join(dataFolder, 'salts')).sort(), [draftOfOpenDay, 'notes'])
    assert.deepEqual(readFileSync(join(dataFolder, 'salts', draftOfOpenDay)), Buffer.from(salt))
  })
})
