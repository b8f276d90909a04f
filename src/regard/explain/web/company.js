// Windows that show the same: what one does, the other does too.

const KEPT = "regard-show";
let lastResort = ""; // of a browser that keeps nothing

/** A name for a show and its second window, the same after the page was loaded again. */
export function companyName() {
  try {
    const name = sessionStorage.getItem(KEPT) ?? crypto.randomUUID();
    sessionStorage.setItem(KEPT, name);
    return name;
  } catch {
    return (lastResort ||= String(Math.random()));
  }
}

/** What is said between the windows of one show. onheard(message) is called with what another window says. */
export class Company {
  constructor(onheard) {
    this.onheard = onheard;
    this.channel = null;
  }

  join(name) {
    if (this.name === name) return;
    this.leave();
    this.name = name;
    this.channel = new BroadcastChannel(`regard show ${name}`);
    this.channel.onmessage = ({ data }) => this.onheard(data);
  }

  say(message) {
    this.channel?.postMessage(message);
  }

  leave() {
    this.channel?.close();
    this.channel = null;
    this.name = undefined;
  }
}
