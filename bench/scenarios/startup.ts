// Measures the time from start to ready on an empty folder, and what an idle instance costs.

import { startBenchServer } from '../bench-server.ts'
import { cpuSeconds, residentMiB } from '../processes.ts'
import { print } from '../report.ts'

const idleSeconds = 8

export async function startup(): Promise<void> {
  const server = await startBenchServer()
  try {
    print({ name: 'start to ready, empty folder', value: `${Math.round(server.startToReadyMs)} ms`, aim: '< 2,000 ms' })
    const processes = { serve: server.pid, ...server.childPids() }
    await new Promise(resolve => setTimeout(resolve, 2_000))
    const before = Object.values(processes).map(cpuSeconds)
    await new Promise(resolve => setTimeout(resolve, idleSeconds * 1000))
    const aims: Record<string, string> = { serve: '< 150 MiB', work: '< 200 MiB', events: '< 450 MiB' }
    let idle = 0
    Object.entries(processes).forEach(([name, pid], index) => {
      const share = (cpuSeconds(pid) - before[index]!) / idleSeconds
      idle += share
      print({
        name: `idle, pennon ${name}`,
        value: `${residentMiB(pid).toFixed(0)} MiB, ${(share * 100).toFixed(2)} % CPU`,
        aim: aims[name] ?? '',
      })
    })
    print({ name: 'idle, all processes', value: `${(idle * 100).toFixed(2)} % CPU`, aim: '< 1 %' })
  } finally {
    await server.stop()
  }
}
