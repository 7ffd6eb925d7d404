// `pennon doctor`: checks one by one what a start needs, and says how to fix faults. Changes nothing unless asked to.

import type { Config } from '#config.ts'
import { readConfigOrRefuse } from '../refuse.ts'
import { checkInstance } from './check-instance.ts'
import {
  checkClock,
  checkDataFolder,
  checkDiskSpace,
  checkNodeVersion,
  checkOpenFiles,
  checkPackages,
} from './check-machine.ts'
import { checkDeferredProjects, checkStoredEvents, checkTrustedTime } from './check-state.ts'
import { checkEventStore, checkGeoip, checkStateStore } from './check-stores.ts'
import type { Finding } from './finding.ts'

/** Prints a line per check. The exit code is 1 if something needs fixing; warnings do not count. */
export async function runDoctorCommand(options: { acceptMissingEvents?: boolean } = {}): Promise<void> {
  const findings = await examine(readConfigOrRefuse(), options.acceptMissingEvents === true)
  const width = Math.max(...findings.map(({ what }) => what.length))
  for (const { what, isGood, found, remedy } of findings) {
    const verdict = isGood ? (remedy === undefined ? 'ok  ' : 'WARN') : 'FAIL'
    console.log(`${verdict}  ${what.padEnd(width)}  ${found}`)
    if (remedy !== undefined) console.log(`      ${' '.repeat(width)}  → ${remedy}`)
  }
  const badCount = findings.filter(({ isGood }) => !isGood).length
  console.log(
    badCount === 0 ? '\nNo problems found.' : `\n${badCount === 1 ? '1 problem' : `${badCount} problems`} found.`,
  )
  process.exit(badCount === 0 ? 0 : 1)
}

async function examine(config: Config, acceptsMissingEvents: boolean): Promise<readonly Finding[]> {
  // This check waits for a process that loads the event store, or for a server, so it runs in parallel with the others.
  const events = checkEventStore(config)
  return [
    checkNodeVersion(),
    checkPackages(),
    checkOpenFiles(),
    checkDataFolder(config),
    await checkDiskSpace(config),
    ...(await checkInstance(config)),
    ...(await checkStateStore(config)),
    await events,
    ...(await checkStoredEvents(config, acceptsMissingEvents)),
    ...(await checkDeferredProjects(config, Date.now())),
    checkGeoip(config, Date.now()),
    checkClock(config),
    ...(await checkTrustedTime(config)),
  ]
}
