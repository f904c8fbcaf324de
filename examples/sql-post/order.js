// Writes an order, and posts the job that goes with it in the same transaction: both or none.
//
//   node order.js DATABASE-URL ORDER
const { Client } = require('pg');

/** Writes an order, and returns the uuid of its job. */
async function order(client, id) {
  await client.query('BEGIN');
  try {
    await client.query('INSERT INTO orders (id, total) VALUES ($1, 99.90)', [id]);
    const { rows } = await client.query(
      "SELECT boardd.post(board => 'default', name => 'invoice', details => $1, priority => 'HIGH') AS job",
      [{ order: id }],
    );
    await client.query('COMMIT');
    return rows[0].job;
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  }
}

async function main([url, id]) {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    console.log(await order(client, Number(id)));
  } finally {
    await client.end();
  }
}

main(process.argv.slice(2)).catch((error) => {
  console.error(`order.js: ${error.message}`);
  process.exitCode = 1;
});
