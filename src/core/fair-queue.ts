// Jobs that wait for a thread, in turns of their senders: however many one sends, another's next job waits for one job of each
// sender and no more. Where the bound is reached, the sender with the most gives way.

export interface QueuedJob {
  /** Whose job it is: what one of them sends is not to delay another's. */
  readonly sender: string
  readonly bytes: number
}

export interface FairQueueLimits {
  readonly jobCountMax: number
  readonly bytesMax: number
}

interface Share<Job> {
  readonly jobs: Job[]
  bytes: number
}

export class FairQueue<Job extends QueuedJob> {
  readonly #limits: FairQueueLimits
  /** In the order of their turns. A sender without jobs is not in here. */
  readonly #shares = new Map<string, Share<Job>>()
  #jobCount = 0
  #bytes = 0

  constructor(limits: FairQueueLimits) {
    this.#limits = limits
  }

  get jobCount(): number {
    return this.#jobCount
  }

  /**
   * Queues a job, as the last of its sender's.
   * @returns the jobs that there is no room for: this one, or the last ones of senders that have more than its sender would.
   */
  push(job: Job): Job[] {
    const refused: Job[] = []
    while (!this.#hasRoomFor(job)) {
      const [sender, share] = this.#largest()
      const own = this.#shares.get(job.sender)
      const withIt = this.#weight({
        jobs: { length: (own?.jobs.length ?? 0) + 1 },
        bytes: (own?.bytes ?? 0) + job.bytes,
      })
      if (share === undefined || this.#weight(share) <= withIt) return [...refused, job]
      refused.push(this.#take(sender, share, share.jobs.pop()!))
    }
    const share = this.#shares.get(job.sender) ?? { jobs: [], bytes: 0 }
    share.jobs.push(job)
    share.bytes += job.bytes
    this.#shares.set(job.sender, share)
    this.#jobCount++
    this.#bytes += job.bytes
    return refused
  }

  /** The first job of the sender whose turn it is, which is the last one's turn then. */
  shift(): Job | undefined {
    const next = this.#shares.entries().next()
    if (next.done === true) return undefined
    const [sender, share] = next.value
    this.#shares.delete(sender)
    this.#shares.set(sender, share)
    return this.#take(sender, share, share.jobs.shift()!)
  }

  /** Empties the queue. */
  clear(): Job[] {
    const jobs: Job[] = []
    for (let job = this.shift(); job !== undefined; job = this.shift()) jobs.push(job)
    return jobs
  }

  #take(sender: string, share: Share<Job>, job: Job): Job {
    share.bytes -= job.bytes
    this.#jobCount--
    this.#bytes -= job.bytes
    if (share.jobs.length === 0) this.#shares.delete(sender)
    return job
  }

  #hasRoomFor({ bytes }: Job): boolean {
    return this.#jobCount < this.#limits.jobCountMax && this.#bytes + bytes <= this.#limits.bytesMax
  }

  #largest(): [sender: string, share: Share<Job> | undefined] {
    let largest: [string, Share<Job> | undefined] = ['', undefined]
    for (const [sender, share] of this.#shares)
      if (largest[1] === undefined || this.#weight(share) > this.#weight(largest[1])) largest = [sender, share]
    return largest
  }

  /** As a part of the queue. */
  #weight({ jobs, bytes }: { readonly jobs: { readonly length: number }; readonly bytes: number }): number {
    return Math.max(jobs.length / this.#limits.jobCountMax, bytes / this.#limits.bytesMax)
  }
}
