// Starts that must be refused with exit code 2 and one line that names the database but never the password.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, copyFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { checkPostgres } from '#adapters/postgres/check-postgres.ts'
import { checkStateStore } from '../../src/commands/doctor/check-stores.ts'
import { readConfig } from '../../src/config.ts'
import { guardedRole, noPostgres, startPostgres } from '../support/postgres.ts'
import { migratedTemplate } from '../support/postgres-state.ts'
import { refusedStart } from '../support/refused-start.ts'
import { startedForTests } from '../support/started-for-tests.ts'
import { tempDir } from '../support/temp-dir.ts'

describe('a start with DATABASE_URL', { skip: noPostgres() }, () => {
  const postgres = startedForTests(startPostgres)
  const secret = 'not-the-right-one'

  const urlOf = (user: string, password: string, database: string) =>
    `postgres://${user}:${password}@127.0.0.1:${postgres.port}/${database}`

  async function refusal(dataFolder: string, settings: Record<string, string>): Promise<string> {
    const line = await refusedStart(dataFolder, settings)
    assert.ok(!line.includes(secret), 'the password is not shown')
    return line
  }

  const refused: Record<string, () => Promise<[url: string, line: RegExp, schema?: string]>> = {
    'a wrong password': async () => [
      urlOf(guardedRole, secret, 'postgres'),
      new RegExp(`127\\.0\\.0\\.1:${postgres.port}/postgres.*password authentication failed`),
    ],
    'an unreachable server': async () => [
      `postgres://pennon:${secret}@127.0.0.1:1/state`,
      /127\.0\.0\.1:1\/state.*ECONNREFUSED/,
    ],
    'a missing database': async () => [urlOf('pennon', secret, 'nowhere'), /\/nowhere.*does not exist/],
    'a state written by a newer Pennon': async () => {
      const url = await migratedTemplate(postgres)
      await postgres.query("INSERT INTO schema_version (version, name) VALUES (999, 'future')", [], url)
      return [url, /newer Pennon \(schema 999/, 'public']
    },
    'a database that cannot hold every text': async () => {
      await postgres.query(`CREATE DATABASE old ENCODING 'LATIN1' TEMPLATE template0`)
      return [urlOf('pennon', secret, 'old'), /encoding is LATIN1/]
    },
  }
  for (const [what, prepare] of Object.entries(refused))
    it(`${what} is refused`, async t => {
      const [url, line, schema] = await prepare()
      const settings = { DATABASE_URL: url, ...(schema && { PENNON_DATABASE_SCHEMA: schema }) }
      assert.match(await refusal(tempDir(t), settings), line)
    })

  it('a role without the right to create tables is refused', async t => {
    const url = await postgres.createDatabase()
    await postgres.query('CREATE ROLE weak LOGIN')
    await postgres.query('REVOKE CREATE ON SCHEMA public FROM PUBLIC', [], url)
    const line = await refusal(tempDir(t), { DATABASE_URL: url.replace('pennon@', 'weak@') })
    assert.match(line, /permission denied/)
    assert.match(line, new RegExp(`127\\.0\\.0\\.1:${postgres.port}`))

    const doctorOn = async (databaseUrl: string) => {
      const config = readConfig({ DATABASE_URL: databaseUrl })
      assert.ok(config.ok)
      return (await checkStateStore(config.value))[0]!
    }
    const finding = await doctorOn(url.replace('pennon@', 'weak@'))
    assert.match(JSON.stringify(finding), /may not create the schema pennon.*CREATE SCHEMA pennon AUTHORIZATION/)
    assert.equal((await doctorOn(url)).isGood, true)
  })

  it('a replica that rejects the login, and an invalid address, are refused', async t => {
    const url = await postgres.createDatabase()
    const replica = await refusal(tempDir(t), {
      DATABASE_URL: url,
      DATABASE_READ_URL: urlOf(guardedRole, secret, 'postgres'),
    })
    assert.match(replica, /DATABASE_READ_URL: .*password authentication failed/)
    const wrong = `mysql://pennon:${secret}@localhost/state`
    assert.match(await refusal(tempDir(t), { DATABASE_URL: wrong }), /DATABASE_URL is not usable/)
    assert.match(await refusal(tempDir(t), { DATABASE_READ_URL: url }), /without DATABASE_URL/)
  })

  it('a check with the right password returns the version and location of the database', async () => {
    const checked = await checkPostgres(urlOf(guardedRole, 'right', 'postgres'))
    assert.ok(checked.ok)
    assert.match(checked.value.version, /^\d+\.\d+/)
    assert.equal(checked.value.place, `127.0.0.1:${postgres.port}/postgres`)
    assert.equal(checked.value.isReplica, false)
  })

  it('sslmode works as in psql', async t => {
    const reaches = async (query: string) => {
      const checked = await checkPostgres(`${postgres.url}?${query}`)
      return checked.ok ? true : checked.error.message
    }
    assert.equal(await reaches('sslmode=disable'), true)
    assert.match(String(await reaches('sslmode=require')), /does not support SSL/)

    const folder = tempDir(t)
    const certificate = (name: string, address: string) => {
      const [key, crt] = [join(folder, `${name}.key`), join(folder, `${name}.crt`)]
      const request = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', `/CN=${name}`]
      const files = ['-addext', `subjectAltName=IP:${address}`, '-keyout', key, '-out', crt]
      execFileSync('openssl', [...request, ...files], { stdio: 'ignore' })
      return { key, crt }
    }
    const serve = async ({ key, crt }: { key: string; crt: string }) => {
      const [row] = await postgres.query<{ data_directory: string }>('SHOW data_directory')
      const { uid, gid } = statSync(row!.data_directory)
      for (const [from, to] of [
        [key, 'server.key'],
        [crt, 'server.crt'],
      ] as const) {
        const path = join(row!.data_directory, to)
        rmSync(path, { force: true })
        copyFileSync(from, path)
        chmodSync(path, 0o600)
        chownSync(path, uid, gid)
      }
      await postgres.query('ALTER SYSTEM SET ssl = on')
      await postgres.restart()
    }

    const here = certificate('here', '127.0.0.1')
    await serve(here)
    assert.equal(await reaches('sslmode=require'), true)
    assert.match(String(await reaches('sslmode=verify-full')), /self-signed certificate/)
    assert.equal(await reaches(`sslmode=verify-full&sslrootcert=${here.crt}`), true)
    const elsewhere = certificate('elsewhere', '192.0.2.1')
    await serve(elsewhere)
    assert.match(String(await reaches(`sslmode=verify-full&sslrootcert=${elsewhere.crt}`)), /altnames|does not match/i)
    assert.equal(await reaches(`sslmode=verify-ca&sslrootcert=${elsewhere.crt}`), true)
    assert.match(String(await reaches(`sslmode=verify-ca&sslrootcert=${here.crt}`)), /certificate/)
  })
})
