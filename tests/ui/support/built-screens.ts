// Builds the screens into a temporary folder, and serves a folder of builds with the routes of a front.

import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { screensRoutes } from '#http/handlers/screens.ts'
import { createHttpServer } from '#http/server.ts'
import type { RandomBytes } from '#services/manage/generate-key.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { openBuiltScreens } from '../../../src/adapters/built-screens/built-screens.ts'
import { type Scope, tempDir } from '../../support/temp-dir.ts'

/** Builds the screens with the workbench. @returns the folder, as `serveScreens` takes it. */
export async function buildWithWorkbench(t: Scope): Promise<string> {
  const folder = tempDir(t)
  mkdirSync(join(folder, 'workbench'))
  const env = { ...process.env, PENNON_UI_WORKBENCH: '1' }
  await promisify(execFile)(process.execPath, ['web/build.ts', join(folder, 'workbench')], { env })
  writeFileSync(join(folder, 'current.json'), JSON.stringify({ stamp: 'workbench', sources: [] }))
  return folder
}

/** @param folder with builds. @returns the address of the server, without `/ui/`. */
export async function serveScreens(t: Scope, folder: string, draw: RandomBytes = randomBytes): Promise<string> {
  const server = createHttpServer({
    routes: screensRoutes({
      screens: openBuiltScreens(folder),
      randomBytes: draw,
      howToBuild: 'Run `npm run ui:build`.',
    }),
    logger: createSilentLogger(),
    metrics: createMetrics(),
    authorize: async () => true,
  })
  t.after(() => server.close())
  return server.listen({ host: '127.0.0.1', port: 0 })
}
