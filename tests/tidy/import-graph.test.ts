import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'

// Which folder may import which: keeps the picture in ARCHITECTURE.md true.
const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..')
const everything = ['*']
/** What the command line may import: it gets adapters only through compose. */
const allButAdapters = [
  'config.ts',
  'distribution.ts',
  'version.ts',
  'core',
  'ports',
  'telemetry',
  'services',
  'wire',
  'http',
  'processes',
  'compose',
  'importer',
]
const allowed: Record<string, readonly string[]> = {
  core: [],
  ports: ['core'],
  wire: ['core'],
  telemetry: [],
  services: ['core', 'ports', 'telemetry'],
  adapters: ['core', 'distribution.ts', 'ports', 'telemetry'],
  http: ['wire', 'services', 'core', 'ports', 'telemetry'],
  processes: ['core', 'telemetry'],
  importer: ['core', 'wire', 'ports', 'telemetry', 'distribution.ts'],
  commands: allButAdapters,
  compose: everything,
  'main.ts': ['commands', 'distribution.ts', 'version.ts'],
  'config.ts': ['core', 'telemetry', 'distribution.ts', 'setting-values.ts'],
  'distribution.ts': [],
  'setting-values.ts': [],
  'version.ts': [],
}

/**
 * Which modules of its area a module may import. A module is a folder; files directly in `core` form the module `core`.
 * An area that is missing here has one module. A new folder needs a row, and rows must not form a cycle.
 */
const modules: Record<string, readonly string[]> = {
  core: [],
  'core/resources': ['core'],
  'core/cookieless': ['core'],
  'core/experiments': ['core', 'core/resources'],
  'core/surveys': ['core', 'core/resources'],
  'core/users': ['core'],
  'core/persons': ['core', 'core/events'],
  'core/groups': ['core', 'core/persons'],
  'core/events': ['core'],
  'core/live': ['core', 'core/events'],
  'core/imports': ['core'],
  'core/log': ['core/events'],
  'core/capture': ['core', 'core/cookieless', 'core/events', 'core/log', 'core/surveys'],
  'core/processing/elements': ['core'],
  'core/processing/properties': ['core', 'core/imports', 'core/persons'],
  'core/processing/rejects': ['core/capture', 'core/events'],
  'core/processing': [
    'core',
    'core/cookieless',
    'core/events',
    'core/capture',
    'core/groups',
    'core/imports',
    'core/persons',
    'core/processing/elements',
    'core/processing/properties',
    'core/processing/rejects',
  ],
  'core/processing/imports': [
    'core',
    'core/events',
    'core/groups',
    'core/imports',
    'core/persons',
    'core/processing',
    'core/processing/properties',
  ],
  'core/processing/history': [
    'core',
    'core/events',
    'core/groups',
    'core/imports',
    'core/persons',
    'core/processing',
    'core/processing/imports',
    'core/processing/properties',
  ],
  'core/flags/match': ['core'],
  'core/sql': ['core'],
  'core/statistics': [],
  'core/insights': ['core', 'core/events', 'core/flags/definitions', 'core/flags/match', 'core/statistics'],
  'core/flags/definitions': ['core', 'core/flags/match', 'core/groups', 'core/resources'],
  'core/flags/rollout': [],
  'core/flags/evaluation': ['core/flags/rollout', 'core', 'core/flags/definitions', 'core/flags/match', 'core/surveys'],

  ports: [],
  'ports/log': [],
  'ports/events': [],
  'ports/state': ['ports/events'],

  'services/shared': [],
  'services/insights': [],
  'services/exports': [],
  'services/live': [],
  'services/flags': ['services/shared'],
  'services/manage': ['services/progress', 'services/shared'],
  'services/scans': ['services/shared'],
  'services/capture': ['services/shared'],
  'services/progress': [],
  'services/processing': ['services/imports', 'services/shared'],
  'services/imports': ['services/progress', 'services/shared'],
  'services/worker': ['services/processing', 'services/progress', 'services/shared'],

  wire: [],
  'wire/address': [],
  'wire/browser': [],
  'wire/bytes': [],
  'wire/flags': ['wire', 'wire/address', 'wire/browser', 'wire/bytes'],
  'wire/management/flags': ['wire', 'wire/flags', 'wire/management'],
  'wire/management/persons': ['wire/management', 'wire/management/flags'],
  'wire/insights': ['wire'],
  'wire/live': ['wire/management'],
  'wire/exports': ['wire/management', 'wire/management/persons'],
  'wire/capture': ['wire', 'wire/bytes'],
  'wire/capture-v1': ['wire', 'wire/address', 'wire/bytes', 'wire/capture'],
  'wire/otlp': ['wire', 'wire/bytes'],
  'wire/recordings': ['wire', 'wire/bytes', 'wire/capture'],
  'wire/rejects': ['wire', 'wire/capture', 'wire/capture-v1'],
  'wire/threads': ['wire/capture', 'wire/capture-v1', 'wire/flags', 'wire/otlp', 'wire/recordings'],

  'http/shared': [],
  'http/openapi': [],
  'http/answers': ['http/shared'],
  'http/bodies': ['http/shared'],
  'http/management/kit': ['http/bodies', 'http/openapi', 'http/shared'],
  'http/management/exports': ['http/answers', 'http/management/kit'],
  'http/management/flags': ['http/management/kit'],
  'http/management/ingestion': ['http/management/kit'],
  'http/management/persons': ['http/management/kit'],
  'http/management/queries': ['http/management/kit'],
  'http/management': [
    'http/management/exports',
    'http/management/flags',
    'http/management/ingestion',
    'http/management/kit',
    'http/management/persons',
    'http/management/queries',
  ],
  'http/handlers': ['http/bodies', 'http/management/kit', 'http/shared'],
  http: ['http/answers', 'http/bodies', 'http/shared'],
  'http/events-port': ['http', 'http/answers', 'http/shared'],

  'adapters/sql/migrations': [],
  'adapters/sql/tables': [],
  'adapters/sql/projects': ['adapters/sql/tables'],
  'adapters/sql/users': ['adapters/sql/tables'],
  'adapters/sql/persons': ['adapters/sql/tables'],
  'adapters/sql/definitions': ['adapters/sql/tables'],
  'adapters/sql/accounting': ['adapters/sql/tables'],
  'adapters/sql/imports': ['adapters/sql/tables'],
  'adapters/sql/processing': ['adapters/sql/tables'],
  'adapters/sql': [
    'adapters/sql/accounting',
    'adapters/sql/definitions',
    'adapters/sql/imports',
    'adapters/sql/migrations',
    'adapters/sql/persons',
    'adapters/sql/processing',
    'adapters/sql/projects',
    'adapters/sql/users',
    'adapters/sql/tables',
  ],

  'adapters/clickhouse/connection': [],
  'adapters/clickhouse/parameters': [],
  'adapters/clickhouse/queries': ['adapters/clickhouse/connection', 'adapters/clickhouse/parameters'],
  'adapters/clickhouse/insights': [
    'adapters/clickhouse/connection',
    'adapters/clickhouse/parameters',
    'adapters/clickhouse/queries',
  ],
  'adapters/clickhouse/writing': ['adapters/clickhouse/connection', 'adapters/clickhouse/parameters'],
  'adapters/clickhouse/sql': [
    'adapters/clickhouse/connection',
    'adapters/clickhouse/parameters',
    'adapters/clickhouse/queries',
  ],
  'adapters/clickhouse/exports': [
    'adapters/clickhouse/connection',
    'adapters/clickhouse/parameters',
    'adapters/clickhouse/queries',
  ],
  'adapters/clickhouse': [
    'adapters/clickhouse/connection',
    'adapters/clickhouse/insights',
    'adapters/clickhouse/exports',
    'adapters/clickhouse/queries',
    'adapters/clickhouse/sql',
    'adapters/clickhouse/writing',
  ],

  'compose/log': [],
  'compose/import': [],
  'compose/stores': ['compose/log'],
  'compose/front': ['compose/log', 'compose/stores'],
  'compose/worker': ['compose/log', 'compose/stores'],
  'compose/backup': ['compose/log', 'compose/stores'],
  'compose/instance': ['compose/backup', 'compose/log', 'compose/stores'],

  'importer/records': [],
  'importer/read': ['importer/records'],
  'importer/sources/amplitude': ['importer/records'],
  'importer/sources/ga4': ['importer/records'],
  'importer/sources/generic/mappings': ['importer/records'],
  'importer/sources/generic': ['importer/records', 'importer/sources/generic/mappings'],
  'importer/sources/heap': ['importer/records'],
  'importer/sources/matomo': ['importer/records'],
  'importer/sources/mixpanel': ['importer/records'],
  'importer/sources/plausible': ['importer/records'],
  'importer/sources/posthog': ['importer/records'],
  'importer/sources/segment': ['importer/records'],
  'importer/sources': [
    'importer/records',
    'importer/sources/amplitude',
    'importer/sources/ga4',
    'importer/sources/generic',
    'importer/sources/heap',
    'importer/sources/matomo',
    'importer/sources/mixpanel',
    'importer/sources/plausible',
    'importer/sources/posthog',
    'importer/sources/segment',
  ],
  'importer/job': ['importer/read', 'importer/records'],
  'importer/fetch': ['importer/job', 'importer/read', 'importer/records'],
  'importer/fetch/apis': ['importer/fetch', 'importer/read', 'importer/records'],
  'importer/stages/report': ['importer/job', 'importer/read', 'importer/records'],
  'importer/stages/expected': ['importer/job', 'importer/records', 'importer/stages/report'],
  'importer/stages': [
    'importer/job',
    'importer/read',
    'importer/records',
    'importer/stages/expected',
    'importer/stages/report',
  ],
  'importer/send': ['importer/fetch', 'importer/job', 'importer/read', 'importer/records', 'importer/stages'],
  'importer/verify': [
    'importer/job',
    'importer/records',
    'importer/send',
    'importer/stages/expected',
    'importer/stages/report',
  ],

  commands: [],
  'commands/client': ['commands'],
  'commands/events': ['commands', 'commands/client'],
  'commands/doctor': ['commands'],
  'commands/flags': ['commands/client'],
  'commands/import/messages': ['commands/client'],
  'commands/import/service': ['commands/client', 'commands/import/messages'],
  'commands/import/job': ['commands', 'commands/client', 'commands/import/service', 'commands/import/messages'],
  'commands/import/fetch': ['commands', 'commands/client', 'commands/import/job', 'commands/import/messages'],
  'commands/import/plan': [
    'commands',
    'commands/client',
    'commands/import/job',
    'commands/import/service',
    'commands/import/messages',
  ],
  'commands/import/run': [
    'commands',
    'commands/client',
    'commands/import/fetch',
    'commands/import/job',
    'commands/import/plan',
    'commands/import/service',
    'commands/import/messages',
  ],
  'commands/import': [
    'commands',
    'commands/client',
    'commands/import/fetch',
    'commands/import/job',
    'commands/import/plan',
    'commands/import/run',
    'commands/import/service',
    'commands/import/messages',
  ],
  'commands/rebuild': ['commands/client'],
  'commands/tail': ['commands', 'commands/client'],
}

/** Adapter folders that others build on: the queries shared by both SQL engines, the dialect of both event stores. */
const sharedAdapters = new Set(['sql', 'clickhouse'])

interface Arrow {
  readonly from: string
  readonly to: string
  readonly text: string
}

const importedNames = /(?:from\s+|import\s*\(\s*|import\s+)'([^']+)'/g

const files = globSync('src/**/*.ts', { cwd: root }).filter(file => !file.endsWith('.test.ts'))
const arrows = files.flatMap(arrowsOf)

function arrowsOf(file: string): Arrow[] {
  const source = readFileSync(join(root, file), 'utf8')
  const targets = [...source.matchAll(importedNames)].map(match => match[1]!)
  return targets
    .filter(target => (target.startsWith('#') || target.startsWith('.')) && target.endsWith('.ts'))
    .map(target => {
      const to = fileOf(target, file)
      return { from: file, to: relative('.', to), text: `${file} → ${to}` }
    })
}

function fileOf(target: string, importer: string): string {
  return target.startsWith('#') ? `src/${target.slice(1)}` : normalize(join(dirname(importer), target))
}

/** The files and packages that the start of a file loads, each with the way to it. */
function loadedBy(start: string): Map<string, string> {
  const loaded = new Map<string, string>()
  const visit = (file: string, way: string): void => {
    if (loaded.has(file)) return
    loaded.set(file, way)
    if (!file.endsWith('.ts')) return
    const source = readFileSync(join(root, file), 'utf8')
    for (const [, name] of source.matchAll(/^(?:im|ex)port (?!type\b)[^'()]*'([^']+)'/gm)) {
      const target = name!.endsWith('.ts') ? fileOf(name!, file) : name!
      visit(target, `${way} → ${target}`)
    }
  }
  visit(start, start)
  return loaded
}

function areaOf(file: string): string {
  return file.split('/')[1]!
}

function findModule(file: string): string {
  return dirname(file).split('/').slice(1).join('/')
}

describe('the import graph', () => {
  it('has no edge out of src, for example to code that only tests use', () => {
    const leaving = arrows.filter(({ to }) => !to.startsWith('src/'))
    assert.deepEqual(
      leaving.map(arrow => arrow.text),
      [],
    )
  })

  it('has no edge that the layout forbids', () => {
    const forbidden = arrows.filter(({ from, to }) => {
      const [source, target] = [areaOf(from), areaOf(to)]
      if (source === target) return false
      const permitted = allowed[source]
      assert.ok(permitted, `src/${source} has no row in the table of this test`)
      return permitted !== everything && !permitted.includes(target)
    })
    assert.deepEqual(
      forbidden.map(arrow => arrow.text),
      [],
    )
  })

  it('has no edge between modules of one area that the area’s table of modules forbids', () => {
    const forbidden = arrows.filter(({ from, to }) => {
      const [source, target] = [findModule(from), findModule(to)]
      if (source === target || areaOf(from) !== areaOf(to)) return false
      // The next test checks imports between folders of adapters.
      if (areaOf(from) === 'adapters' && from.split('/')[2] !== to.split('/')[2]) return false
      assert.ok(modules[source], `src/${source} has no row in the table of modules`)
      return !modules[source].includes(target)
    })
    assert.deepEqual(
      forbidden.map(arrow => arrow.text),
      [],
    )
  })

  it('has a table of modules without a cycle, an unused row or an unused edge', () => {
    const found = new Set(files.map(findModule))
    const used = new Set(arrows.map(({ from, to }) => `${findModule(from)} → ${findModule(to)}`))
    const unused = Object.entries(modules).flatMap(([module, others]) => [
      ...(found.has(module) ? [] : [module]),
      ...others.map(other => `${module} → ${other}`).filter(arrow => !used.has(arrow)),
    ])
    assert.deepEqual(unused, [])
    const walk = (module: string, path: readonly string[]): void => {
      assert.ok(!path.includes(module), `cycle of modules: ${[...path, module].join(' → ')}`)
      for (const other of modules[module] ?? []) walk(other, [...path, module])
    }
    for (const module of Object.keys(modules)) walk(module, [])
  })

  it('keeps adapters separate, so that replacing one never edits another', () => {
    const crossing = arrows.filter(({ from, to }) => {
      if (areaOf(from) !== 'adapters' || areaOf(to) !== 'adapters') return false
      const [source, target] = [from.split('/')[2]!, to.split('/')[2]!]
      return source !== target && !sharedAdapters.has(target)
    })
    assert.deepEqual(
      crossing.map(arrow => arrow.text),
      [],
    )
  })

  // What the screens share with the server runs in a browser: pure code, such as the evaluator.
  it('leads from the screens only to the core, and to the packages that are for them', () => {
    const { uiDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      uiDependencies: string[]
    }
    const outside = globSync('web/**/*.{ts,tsx}', { cwd: root })
      .filter(file => !file.startsWith('web/dist/') && !/\.test\.ts$|^web\/build\.ts$/.test(file))
      .flatMap(file =>
        // Programs for people to copy stand in template literals.
        [
          ...readFileSync(join(root, file), 'utf8')
            .replaceAll(/`[^`]*`/g, '')
            .matchAll(importedNames),
        ]
          .map(([, target]) => target!)
          .filter(target => !target.startsWith('.') && !target.startsWith('#core/') && !target.startsWith('virtual:'))
          .filter(target => !uiDependencies.some(name => target === name || target.startsWith(`${name}/`)))
          .map(target => `${file} → ${target}`),
      )
    assert.deepEqual(outside, [])
  })

  it('has only one module that knows which adapter the log has', () => {
    const knowing = arrows.filter(
      ({ from, to }) => to.startsWith('src/adapters/sqlite-log/') && !from.startsWith('src/adapters/sqlite-log/'),
    )
    assert.deepEqual([...new Set(knowing.map(({ from }) => findModule(from)))], ['compose/log'])
  })

  it('has no cycle', () => {
    const next = Map.groupBy(arrows, arrow => arrow.from)
    const done = new Set<string>()
    const walk = (file: string, path: readonly string[]): void => {
      if (path.includes(file)) assert.fail(`circle: ${[...path.slice(path.indexOf(file)), file].join(' → ')}`)
      if (done.has(file)) return
      for (const { to } of next.get(file) ?? []) walk(to, [...path, file])
      done.add(file)
    }
    for (const file of files) walk(file, [])
  })

  it('loads no large package into a process that does not need it', () => {
    const rare = ['@aws-sdk/client-s3', 'hyparquet', 'hyparquet-writer', 'pg']
    const without: Record<string, readonly string[]> = {
      'src/commands/serve.ts': ['kysely', ...rare],
      'src/commands/front.ts': ['kysely', ...rare],
      'src/commands/work.ts': ['fastify', 'typebox', ...rare],
      'src/commands/engine.ts': ['@clickhouse/client', 'fastify', 'kysely', 'pino', 'prom-client', 'typebox', ...rare],
    }
    for (const [command, packages] of Object.entries(without)) {
      const loaded = loadedBy(command)
      for (const name of packages) assert.equal(loaded.get(name), undefined)
    }
  })

  it('allows evaluating flags without a log, and without the other stores of an instance', () => {
    const adapters = ['context', 'decode-pool', 'definitions', 'flags', 'servers']
      .flatMap(part => [...loadedBy(`src/compose/front/${part}.ts`).keys()])
      .filter(file => file.startsWith('src/adapters/') || /^src\/compose\/(?!front\/)/.test(file))
    assert.deepEqual(
      new Set(adapters.map(dirname)),
      new Set(['system', 'decode-threads', 'posthog-js'].map(name => `src/adapters/${name}`)),
    )
  })

  it('has no file in src that is never imported', () => {
    const reached = new Set<string>()
    const visit = (file: string): void => {
      if (reached.has(file)) return
      reached.add(file)
      const source = readFileSync(join(root, file), 'utf8')
      for (const { to } of arrowsOf(file)) visit(to)
      // Threads are started by file name, not imported.
      for (const match of source.matchAll(/new URL\('(\.[^']+\.ts)', import\.meta\.url\)/g))
        visit(normalize(join(dirname(file), match[1]!)))
    }
    visit('src/main.ts')
    assert.deepEqual(
      files.filter(file => !reached.has(file)),
      [],
    )
  })
})
